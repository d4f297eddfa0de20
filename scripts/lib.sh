# Sourced by the other scripts: what a machine needs, and how to say it when it cannot be installed.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { printf '\033[1m%s\033[0m\n' "$*" >&2; }
die() { printf 'cloudsandbox: %s\n' "$*" >&2; exit 1; }

# Runs a command as root: directly, or through sudo where that exists.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null 2>&1; then sudo "$@"
  else die "this needs root to run: $*"$'\n'"Run that command as root, then repeat."
  fi
}

packages_hint() {
  cat >&2 <<'EOF'
Install these, then run the command again:
  Debian, Ubuntu  apt-get install build-essential python3 git pkg-config libcurl4-openssl-dev libcjson-dev
  Fedora          dnf install gcc gcc-c++ make python3 git pkgconf libcurl-devel cjson-devel
  Alpine          apk add bash build-base python3 git pkgconf curl-dev cjson-dev linux-headers
  macOS           xcode-select --install && brew install pkgconf cjson
EOF
}

# install_missing PROBE=PACKAGE... : installs the packages whose probe fails. A probe is a program
# on PATH, or a header or file that must exist when it begins with '/', or a pkg-config module when
# it begins with 'pc:'.
install_missing() {
  local item probe package missing=()
  for item in "$@"; do
    probe=${item%%=*} package=${item#*=}
    case " ${missing[*]-} " in *" $package "*) continue ;; esac
    case "$probe" in
      pc:*) command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "${probe#pc:}" && continue ;;
      /*) [ -e "$probe" ] && continue ;;
      *) command -v "$probe" >/dev/null 2>&1 && continue ;;
    esac
    missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if ! command -v apt-get >/dev/null 2>&1; then
    printf 'cloudsandbox: missing here: %s\n' "${missing[*]}" >&2
    packages_hint
    exit 1
  fi
  say "Installing system packages: ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q >/dev/null
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" >/dev/null
}

need_node() {
  command -v node >/dev/null 2>&1 || die "Node.js 20.19 or newer is needed (with npm); see nodejs.org or your distribution."
  node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' ||
    die "Node.js 20.19 or newer is needed; this is $(node --version)."
}

# What building the package takes.
setup_build() {
  need_node
  install_missing gcc=build-essential g++=build-essential make=build-essential python3=python3 \
    git=git pkg-config=pkg-config pc:libcurl=libcurl4-openssl-dev pc:libcjson=libcjson-dev
}

# JavaScript packages as locked; without scripts, the build is a step of its own.
setup_packages() {
  if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
    say "Installing npm packages"
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
  fi
}

# The clients that are in Python, without what they do not import. One asks for 3.12; what is used of it runs on
# 3.11 too, which Debian 12 has.
python_packages=$root/test/interop/build/python
setup_python_packages() {
  local list=$root/test/interop/python-requirements.txt
  if [ -e "$python_packages/done" ] && [ ! "$list" -nt "$python_packages/done" ]; then return; fi
  python3 -m pip --version >/dev/null 2>&1 || install_missing pip3=python3-pip
  rm -rf "$python_packages"
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
    --ignore-requires-python --only-binary=:all: --target "$python_packages" -r "$list"
  touch "$python_packages/done"
}

# runtime_program bun|deno: that runtime, as an npm package, without its install script; prints the program.
runtime_program() {
  local folder=build/runtimes/$1 package program
  case $1 in
    bun) package=@oven/bun-linux-x64@1.4 program=@oven/bun-linux-x64/bin/bun ;;
    deno) package=@deno/linux-x64-glibc@2.9 program=@deno/linux-x64-glibc/deno ;;
    *) die "there is no runtime $1 here; there are bun and deno" ;;
  esac
  [ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || die "there is no package of Bun and Deno for this system"
  mkdir -p "$folder"
  printf '{ "private": true }\n' >"$folder/package.json"
  npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error "$package" >/dev/null
  echo "$root/$folder/node_modules/$program"
}

# Builds when a source is newer than the binary, or when that has other providers than are wanted.
build_native() {
  local out=build/Release/cloudsandbox.node with=${CLOUDSANDBOX_TEST_PROVIDERS-}
  if [ "$with" != "$(cat build/providers 2>/dev/null)" ] || [ ! -e "$out" ] || [ ! -e build/Release/sbx_guard ] ||
    [ -n "$(find src test/providers binding.gyp scripts/embed.sh -newer "$out" -type f -print -quit)" ]; then
    say "Building the native core"
    npm run --silent build
    echo "$with" >build/providers
  fi
}

# js_tests OPTION...: the JavaScript tests of the folders in $folders (default: all), but for those that have packages,
# or engines, of their own.
js_tests() {
  local file files=() # not by mapfile, which the bash of macOS does not have
  # shellcheck disable=SC2086
  while IFS= read -r file; do files+=("$file"); done < <(
    find ${folders:-test} -name '*.test.js' -not -path 'test/interop/*' -not -path 'test/engines/*' | sort
  )
  node --test --test-concurrency=2 "$@" "${files[@]}"
}
