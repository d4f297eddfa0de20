{
  "variables": {
    "cjson_cflags%": "<!(pkg-config --cflags libcjson 2>/dev/null || true)",
    # Providers that exist in the tests alone; see test/providers/.
    "test_providers%": 0,
    "package_version%": "<!(node -p \"require('./package.json').version\")"
  },
  "target_defaults": {
    "default_configuration": "Release",
    "cflags": ["-fvisibility=hidden", "-fstack-protector-strong", "-ffunction-sections", "-fdata-sections"],
    "cflags_c": ["-std=c17", "-Wall", "-Wextra", "-Wshadow"],
    "defines": ["_GNU_SOURCE", "_FORTIFY_SOURCE=2"],
    "xcode_settings": {
      "GCC_SYMBOLS_PRIVATE_EXTERN": "YES",
      "GCC_C_LANGUAGE_STANDARD": "c17",
      "CLANG_CXX_LANGUAGE_STANDARD": "c++17",
      "MACOSX_DEPLOYMENT_TARGET": "12.0"
    }
  },
  "targets": [
    {
      "target_name": "sbx_core",
      "type": "static_library",
      "sources": ["<!@(node scripts/sources.mjs core)"],
      "include_dirs": ["src", "<(INTERMEDIATE_DIR)"],
      "cflags": ["<@(cjson_cflags)"],
      "conditions": [
        ["OS=='linux'", { "defines": ["SBX_WEAK_UV"] }],
        ["test_providers==1", {
          "sources": ["test/providers/line/provider.c"],
          "defines": ["SBX_TEST_PROVIDERS"]
        }]
      ],
      "actions": [
        {
          "action_name": "runner_programs",
          "inputs": ["scripts/embed.sh", "<!@(node scripts/sources.mjs programs)"],
          "outputs": ["<(INTERMEDIATE_DIR)/runner_programs.h"],
          "action": ["sh", "scripts/embed.sh", "-o", "<@(_outputs)", "src/providers/remote/runner"]
        }
      ]
    },
    {
      "target_name": "sbx_guard",
      "type": "executable",
      "sources": ["<!@(node scripts/sources.mjs guard)"],
      "include_dirs": ["src"]
    },
    {
      "target_name": "cloudsandbox",
      "dependencies": ["sbx_core", "sbx_guard"],
      "sources": ["<!@(node scripts/sources.mjs binding)"],
      "include_dirs": ["src", "<!(node scripts/sources.mjs napi)"],
      "defines": [
        "SBX_VERSION=\"<(package_version)\"",
        "NAPI_VERSION=8",
        "NODE_ADDON_API_DISABLE_CPP_EXCEPTIONS",
        "NODE_ADDON_API_DISABLE_DEPRECATED",
        "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS"
      ],
      "cflags_cc": ["-std=c++17", "-fno-exceptions", "-Wall", "-Wextra"],
      "libraries": ["<!@(pkg-config --libs libcjson 2>/dev/null || echo -lcjson)"],
      "conditions": [
        ["OS=='linux'", {
          "ldflags": [
            "-Wl,-rpath,'$$ORIGIN'", "-Wl,-z,relro,-z,now", "-Wl,--exclude-libs,ALL", "-Wl,-Bsymbolic", "-Wl,--gc-sections"
          ],
          "libraries": ["-ldl"]
        }]
      ]
    }
  ]
}
