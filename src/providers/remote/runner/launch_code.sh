# shellcheck shell=sh
# launch LANGUAGE FILE TEXT: becomes the command that runs code, in a session of its own where there is setsid. The
# code is in a file; without FILE it is TEXT; without both, standard input.
#
# For `node -e` and for standard input, Node defines each built-in module as a variable; for a file it does not. So
# a little text goes before: the file is the main module nevertheless, and what it sees is as without that text.
# include session.sh
launch() {
  case $1${2:+/}${3:+.} in
  python) session python3 -u - ;;
  node) session node - ;;
  python/*) session python3 -u "$2" ;;
  node/*)
    session node -e '{const q=require,g=globalThis,d=Object.defineProperty,{runMain:r}=q("module");
      for(const k of["module","exports","require","__filename","__dirname"])delete g[k];
      d(g,"crypto",{get:()=>q("crypto"),set:value=>d(g,"crypto",{value,writable:!0}),configurable:!0});
      process.execArgv=[];delete process._eval;process.nextTick(r)}' "$2"
    ;;
  python.) session python3 -u -c "$3" ;;
  *) session node "--eval=$3" ;;
  esac
}
