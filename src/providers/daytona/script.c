/* script.c - the text that runs a command inside the sandbox, and reading its report.
 *
 * The toolbox runs a text by feeding it to some shell and gives back what that prints, but nothing
 * of it when its limit passes; both outputs are mixed, bytes that are no UTF-8 are lost, and a
 * command that reads its input eats the rest of the text. So the text that is sent is ours: one
 * `exec` of /bin/sh with a program in its arguments, and the user's text and input in base64 behind
 * it. The program stores them in a folder of its own, runs the command with its input and outputs
 * in files there, ends it when its limit passes, and prints a report. The folder stays until a
 * later command's program takes it away, so that a report that got lost can be asked for again.
 *
 * The report, in lines: "<tag> <end> <exit code> <tree gone> <size> <size>"; head and tail of
 * stdout; head and tail of stderr, each in base64; "<tag> end".
 *
 * Invariant: text of the user is never part of the program: it comes in base64, or quoted where an
 * old daemon leaves no other way. */
#include "providers/daytona/daytona.h"

#include "core/enc.h"
#include "core/err.h"

#include <string.h>

/* Old daemons pass the text as one argument, which has its limit. */
#define MAX_ARGUMENT ((size_t)120 * 1024)
#define MAX_TEXT ((size_t)768 << 20)
/* Room for what most commands add to a program. */
#define LITTLE_TEXT ((size_t)512)
/* How much longer than the limit of the command the toolbox waits, in seconds. */
#define TOOLBOX_GRACE_S 15
#define FETCH_LIMIT_S 30
#define KILL_LIMIT_S 30
#define LIST_LIMIT_S 120

/* ---- the programs --------------------------------------------------------------------------- */

/* No single quote may stand in these texts. Every variable begins with _cs_: a shell keeps exported
 * what came to it exported, so that the command would see our value of a variable of its own. The
 * folder's name needs no quotes.
 *
 * A variable PATH of the command must not keep the program from finding its own tools. */
#define PROLOGUE "exec 2>/dev/null; _cs_path=$PATH; PATH=/usr/local/bin:/usr/bin:/bin:$PATH\n"

/* tell TAG WORD: a report without output, and the end. */
#define TELL "tell() { echo; echo $1 $2 0 0 0 0; echo; echo; echo; echo; echo $1 end; exit; }\n"

/* ended TAG: sends SIGKILL to every process that has the mark of the command in its environment,
 * until none is left. All are stopped first, so that none sees another one die. That finds children
 * that made a session of their own, too. BusyBox's grep ends a line at a NUL, so that it sees the
 * first variable only, and may not know -z; a shell leaves the NULs out. */
#define ENDED                                                                                      \
  "marked() { grep -qz . /dev/null; if [ $? = 1 ]; then grep -slzF $1 /proc/[0-9]*/environ; "      \
  "else for _cs_f in /proc/[0-9]*/environ; do "                                                    \
  "case $(cat $_cs_f) in *$1*) echo $_cs_f;; esac; done; fi; }\n"                                  \
  "ended() { _cs_n=0; while [ $_cs_n -lt 40 ]; do _cs_p=; "                                        \
  "for _cs_f in $(marked CLOUDSANDBOX_RUN=$1); do "                                                \
  "_cs_f=${_cs_f#/proc/}; _cs_p=\"$_cs_p ${_cs_f%/environ}\"; done; "                              \
  "[ \"$_cs_p\" ] || return 0; kill -STOP $_cs_p; kill -9 $_cs_p; "                                \
  "_cs_n=$((_cs_n+1)); sleep 0.02; done; return 1; }\n"

/* forget TAG TAGS: takes away the folders of commands whose reports have arrived, or are not wanted
 * any more. A command that still runs does that by itself when it finds the file "forget". */
#define FORGET                                                                                     \
  "forget() { _cs_x=; for _cs_f in $2; do _cs_f=${0%$1}$_cs_f; true >$_cs_f/forget || "            \
  "continue; [ ! -s $_cs_f/end ] && read -r _cs_p <$_cs_f/pid && kill -0 $_cs_p || "               \
  "_cs_x=\"$_cs_x $_cs_f $_cs_f.stop\"; done; rm -rf $_cs_x >/dev/null & }\n"

/* size FILE; part FILE FROM COUNT */
#define PARTS                                                                                      \
  "size() { if [ -s $1 ]; then echo $(($(wc -c <$1))); else echo 0; fi; }\n"                       \
  "code() { base64 | tr -d \\\\n; }\n"                                                             \
  "part() { [ $3 -le 0 ] || tail -c +$(($2+1)) $1 | head -c $3 | code; echo; }\n"

/* report TAG END CODE GONE HEAD TAIL */
#define REPORT                                                                                     \
  "total() { if [ -e $1.gone ]; then echo $(($(cat $1.gone)+$(size $1)+$(size $1.a)+$(size "       \
  "$1.b)))"                                                                                        \
  "; else size $1; fi; }\n"                                                                        \
  "show() { _cs_n=$2; [ $2 -le $(($3+$4)) ] || _cs_n=$3; part $1 0 $_cs_n; "                       \
  "[ $_cs_n = $2 ] || [ $4 = 0 ] || cat $1 $1.a $1.b | tail -c $4 | code; echo; }\n"               \
  "report() { _cs_a=$(total $0/out); _cs_b=$(total $0/err); "                                      \
  "echo; echo $1 $2 $3 $4 $_cs_a $_cs_b; "                                                         \
  "show $0/out $_cs_a $5 $6; show $0/err $_cs_b $5 $6; echo $1 end; }\n"

/* $1 tag, $2 limit in seconds or 0, $3 head, $4 tail, $5 1: both outputs in one file,
 * $6 1: keep what does not fit, $7 what the shell does with the command's file, $8 1: there is
 * input, $9 tags to forget. The text is on descriptor 3, the input on 4.
 *
 * The timer is a process of its own, ended through its trap: nothing sleeps on behind a command
 * that was quick. Where sleep takes no fractions the limit is a little longer. The command itself
 * runs in the foreground: in the background a shell would take its SIGINT away.
 *
 * A proxy may deliver a request twice when its own connection breaks: the folder is there then, and
 * the command is not run again. What is in the folder is kept for the case that the report gets
 * lost on its way; see ask_program.
 *
 * Outputs are pipes, as programs expect: writing to /dev/stderr would cut a file off. When the
 * command has ended, what stands in the pipes is waited for; a process that it has left behind and
 * that holds them is not. They are read by dd, which writes what it gets at once; every 4 MiB or
 * 128 reads there is a look at the size. When the first file has more than a report takes, two
 * others take turns, so that the end is at hand and the disk does not fill up; what is dropped is
 * counted. */
static const char run_program[] = PROLOGUE TELL FORGET ENDED PARTS REPORT
    "mkdir -m 700 $0 || { [ -d $0 ] && tell $1 again; tell $1 unstored; }\n"
    "echo $$ >$0/pid; [ ! \"$9\" ] || forget $1 \"$9\"\n"
    "base64 -d <&3 >$0/cmd && true >$0/err && "
    "{ [ $8 = 0 ] || base64 -d <&4 >$0/in; } || { rm -rf $0; tell $1 unstored; }\n"
    "exec 3<&- 4<&-; _cs_s=$(command -v setsid)\n"
    "store() { { exec <$0/$1; _cs_b=$0/$2; _cs_f=$_cs_b\n"
    "while _cs_r=$(LC_ALL=C dd bs=32k count=128 2>&1 >>$_cs_f); _cs_r=${_cs_r%% records in*}; "
    "_cs_r=${_cs_r##*[!0-9+]}; case $_cs_r in [0-9]*+[0-9]*) ;; *) break;; esac; "
    "[ $((${_cs_r%+*}+${_cs_r#*+})) -eq 128 ]; do "
    "if [ $3 = 1 ] || [ $(size $_cs_f) -lt $4 ]; then continue; fi\n"
    "if [ $_cs_f = $_cs_b ]; then _cs_f=$_cs_b.b; _cs_k=0; else _cs_k=$((_cs_k+$(size $_cs_b.a))); "
    "mv $_cs_b.b $_cs_b.a; fi; echo $_cs_k >$_cs_b.gone; done\n"
    "true >$0/$1.end; } >/dev/null & }\n"
    "_cs_t=; _cs_c=137\n"
    "if [ ! -e $0.stop ]; then\n"
    "if [ $2 != 0 ]; then ( sleep $2 & trap \"kill \\$!; exit\" TERM; "
    "true >$0/timer; wait $! || { sleep $((${2%.*}+1)) & wait $!; }; "
    "true >$0/late; ended $1 ) >/dev/null & _cs_t=$!; fi\n"
    "mkfifo $0/o $0/e; store o out $6 $(($3+$4))\n"
    "if [ $5 = 1 ]; then true >$0/e.end; else store e err $6 $(($3+$4)); fi\n"
    "( if [ $5 = 1 ]; then exec >$0/o 2>&1; else exec >$0/o 2>$0/e; fi; "
    "_cs_i=/dev/null; [ $8 = 0 ] || _cs_i=$0/in; "
    "export CLOUDSANDBOX_RUN=$1 PATH=\"$_cs_path\"; "
    "exec $_cs_s /bin/sh -c \"$7\" $0/cmd <$_cs_i )\n"
    "_cs_c=$?; echo $_cs_c >$0/code\n"
    "if [ $_cs_t ]; then while [ ! -e $0/timer ]; do :; done; kill $_cs_t; fi\n"
    "_cs_n=0; until [ -e $0/o.end ] && [ -e $0/e.end ] || [ $_cs_n -gt 320 ]; do "
    "_cs_n=$((_cs_n+1)); [ $_cs_n -lt 300 ] || sleep 0.01; done\n"
    "fi\n"
    "_cs_e=ran; [ -e $0.stop ] && _cs_e=stopped; [ -e $0/late ] && _cs_e=late\n"
    "_cs_g=0; [ $_cs_e = ran ] || { ended $1 && _cs_g=1; }\n"
    "echo $_cs_e $_cs_c $_cs_g >$0/end; report $1 $_cs_e $_cs_c $_cs_g $3 $4\n"
    "if [ -e $0/forget ]; then rm -rf $0 $0.stop; "
    "else rm -f $0/cmd $0/in >/dev/null & fi";

/* $1 tag, $2 head, $3 tail: the report of a command, once more. Waits up to five seconds for it,
 * as long as the program that runs the command lives. */
static const char ask_program[] = PROLOGUE TELL PARTS REPORT
    "_cs_n=0; _cs_p=; until [ -s $0/end ] || [ $_cs_n = 100 ]; do "
    "[ -d $0 ] || tell $1 absent; "
    "if [ $_cs_p ]; then kill -0 $_cs_p || break; else read -r _cs_p <$0/pid; fi; "
    "_cs_n=$((_cs_n+1)); sleep 0.05; done\n"
    "if read -r _cs_e _cs_c _cs_g <$0/end; then report $1 $_cs_e $_cs_c $_cs_g $2 $3\n"
    "elif kill -0 $_cs_p; then tell $1 going; else tell $1 ended; fi";

/* $1 tag, $2 and $3 offsets, $4 most, $5 1: the command is over. */
static const char fetch_program[] = PROLOGUE PARTS
    "_cs_n=0; while _cs_a=$(size $0/out); _cs_b=$(size $0/err); "
    "[ $5 = 0 ] && [ $_cs_n -lt 40 ] && [ $_cs_a -le $2 ] && [ $_cs_b -le $3 ] && [ -d $0 ] && "
    "[ ! -e $0/code ]; do _cs_n=$((_cs_n+1)); sleep 0.025; done\n"
    "_cs_x=$((_cs_a-$2)); [ $_cs_x -le $4 ] || _cs_x=$4\n"
    "_cs_y=$((_cs_b-$3)); [ $_cs_y -le $4 ] || _cs_y=$4\n"
    "echo; echo $1 ran 0 0 $_cs_a $_cs_b\n"
    "part $0/out $2 $_cs_x; echo; part $0/err $3 $_cs_y; echo; echo $1 end";

/* $1 tag of the report, $2 tags to forget. */
static const char forget_program[] = PROLOGUE TELL FORGET "forget $1 \"$2\"; tell $1 ran";

/* $1 tag. The mark comes first: a command that has not begun will see it, and not begin. */
static const char kill_program[] = PROLOGUE TELL ENDED
    "true >$0.stop; _cs_k=0; while [ $_cs_k -lt 100 ]; do ended $1; "
    "[ -d $0 ] && [ ! -e $0/code ] || break; _cs_k=$((_cs_k+1)); sleep 0.02; done\n"
    "tell $1 stopped";

/* $1 tag, $2 most bytes. Size, blank, path and NUL of each file. Where find has no -printf, each
 * size is asked for by a process of its own. */
static const char list_program[] = PROLOGUE
    "if find . -maxdepth 0 -printf x >/dev/null; then "
    "files() { find . -type f -printf \"%s %p\\0\"; }; else files() { find . -type f -exec "
    "/bin/sh -c \"for _cs_f do printf \\\"%s %s\\\\0\\\" \\$((\\$(wc -c <\\\"\\$_cs_f\\\"))) "
    "\\\"\\$_cs_f\\\"; done\" sh {} +; }; fi\n"
    "echo; echo $1 ran 0 0 $2 0; files | head -c $2 | base64 | tr -d \\\\n\n"
    "echo; echo; echo; echo; echo $1 end";

/* What the shell does with the file of the command, $0. */
#define RUN_SHELL ". $0"
#define RUN_PYTHON "exec python3 -u - <$0"
/* Code on its standard input has no built-in modules as variables, as node -e gives them. */
#define RUN_NODE                                                                                   \
  "_cs_m=${0%cmd}modules.cjs; printf %s \""                                                        \
  "const {builtinModules} = require(\\\"module\\\");\n"                                            \
  "for (const name of builtinModules) {\n"                                                         \
  "if (name.startsWith(\\\"_\\\") || name.includes(\\\"/\\\") || (name in globalThis && name !== " \
  "\\\"crypto\\\")) continue;\n"                                                                   \
  "const put = (value) => Object.defineProperty(globalThis, name, {value, writable: true, "        \
  "configurable: true});\n"                                                                        \
  "Object.defineProperty(globalThis, name, {configurable: true, set: put, get() { const value = "  \
  "require(name); put(value); return value; }});\n"                                                \
  "}\n"                                                                                            \
  "\" >$_cs_m; exec node -r $_cs_m - <$0"
/* The input is for the code. */
#define RUN_PYTHON_WITH_INPUT "exec python3 -u -c \"$(cat $0)\""
#define RUN_NODE_WITH_INPUT "exec node -e \"$(cat $0)\""

/* ---- writing -------------------------------------------------------------------------------- */

/* run_program as it stands in a JSON string. It goes along with every command, always the same, and
 * to escape it each time would take longer than all the rest of the writing. */
static struct {
  uv_once_t once;
  size_t len;
  char text[2 * sizeof run_program];
} escaped_run = {.once = UV_ONCE_INIT};

static void escape_run(void) {
  char *to = escaped_run.text;
  for (const char *c = run_program; *c != '\0'; c++) {
    char escape = *c;
    if (*c == '\n')
      escape = 'n';
    if (*c == '\n' || *c == '"' || *c == '\\')
      *to++ = '\\';
    *to++ = escape;
  }
  escaped_run.len = (size_t)(to - escaped_run.text);
}

/* A text on its way into the member "command" of a request's body. It is written in its place at
 * once, as the inside of a JSON string; for old daemons, as it is, into a buffer of its own. */
typedef struct script {
  sbx_buf *to; /* texts that need no escapes may be added as they are */
  sbx_buf *body;
  sbx_buf unwrapped;
  const sbx_session *session;
} script;

static void begin_script(script *s, sbx_buf *body, const sbx_session *session, size_t room) {
  s->body = body;
  s->to = session->old_shell ? &s->unwrapped : body;
  s->session = session;
  sbx_buf_init(&s->unwrapped, MAX_TEXT);
  sbx_buf_init(body, MAX_TEXT);
  sbx_buf_append_str(body, "{\"command\":\"");
  sbx_buf_reserve(s->to, room + LITTLE_TEXT);
}

static void put(script *s, sbx_slice text) {
  if (s->to == s->body)
    sbx_json_escape(s->to, text);
  else
    sbx_buf_append_slice(s->to, text);
}

static void put_str(script *s, const char *text) {
  put(s, sbx_slice_str(text));
}

/* Behind a blank. */
static void put_number(script *s, uint64_t value) {
  char text[21];
  size_t at = sizeof text;
  do {
    text[--at] = (char)('0' + value % 10);
    value /= 10;
  } while (value > 0);
  text[--at] = ' ';
  sbx_buf_append(s->to, text + at, sizeof text - at);
}

static void put_program_name(script *s, const char *tag) {
  sbx_buf_append_str(s->to, "' /tmp/.cloudsandbox-");
  sbx_buf_append_str(s->to, tag);
  sbx_buf_append_char(s->to, ' ');
  sbx_buf_append_str(s->to, tag);
}

/* exec /bin/sh -c PROGRAM FOLDER TAG */
static void put_program(script *s, const char *program, const char *tag) {
  put_str(s, "exec /bin/sh -c '");
  put_str(s, program);
  put_program_name(s, tag);
}

static void put_run_program(script *s, const char *tag) {
  if (s->to != s->body) {
    put_program(s, run_program, tag);
    return;
  }
  uv_once(&escaped_run.once, escape_run);
  sbx_buf_append_str(s->to, "exec /bin/sh -c '");
  sbx_buf_append(s->to, escaped_run.text, escaped_run.len);
  put_program_name(s, tag);
}

/* The lines of a here-document; its end cannot stand in base64. */
static void put_document(script *s, sbx_slice bytes) {
  sbx_base64_encode(s->to, bytes);
  put_str(s, "\n.\n");
}

/* Strict quoting for /bin/sh: the only one there is. */
static void quote(sbx_buf *out, sbx_slice text) {
  sbx_buf_append_char(out, '\'');
  while (text.len > 0) {
    size_t plain = sbx_slice_find(text, '\'');
    sbx_buf_append(out, text.ptr, plain);
    if (plain < text.len)
      sbx_buf_append_str(out, "'\\''");
    text = sbx_slice_skip(text, plain + 1);
  }
  sbx_buf_append_char(out, '\'');
}

static const char *how_to_run(const sbx_exec_spec *spec) {
  bool input = spec->stdin_bytes.len > 0;
  if (spec->kind != SBX_EXEC_CODE)
    return RUN_SHELL;
  if (spec->language == SBX_LANG_PYTHON)
    return input ? RUN_PYTHON_WITH_INPUT : RUN_PYTHON;
  return input ? RUN_NODE_WITH_INPUT : RUN_NODE;
}

static void fail_script(script *s, int error) {
  if (s->to->error == SBX_OK)
    s->to->error = error;
}

static void put_command_text(script *s, const sbx_exec_spec *spec) {
  sbx_buf line;
  if (spec->kind != SBX_EXEC_ARGV) {
    put_document(s, spec->text);
    return;
  }
  sbx_buf_init(&line, MAX_TEXT);
  sbx_buf_append_str(&line, "exec");
  for (size_t i = 0; i < spec->argc; i++) {
    sbx_buf_append_char(&line, ' ');
    quote(&line, spec->argv[i]);
  }
  if (line.error == SBX_OK)
    put_document(s, sbx_buf_slice(&line));
  else
    fail_script(s, line.error);
  sbx_buf_deinit(&line);
}

/* Old daemons take no variables, and have their working directory in another field. */
static void put_exports(script *s, const sbx_exec_spec *spec) {
  sbx_buf lines;
  sbx_buf_init(&lines, MAX_TEXT);
  for (size_t i = 0; s->session->old_env && i < spec->env_count; i++) {
    sbx_buf_append_str(&lines, "export ");
    sbx_buf_append_slice(&lines, spec->env[i].name);
    sbx_buf_append_char(&lines, '=');
    quote(&lines, spec->env[i].value);
    sbx_buf_append_char(&lines, '\n');
  }
  if (lines.error == SBX_OK)
    put(s, sbx_buf_slice(&lines));
  else
    fail_script(s, lines.error);
  sbx_buf_deinit(&lines);
}

/* The tags of the commands whose folders may go, as one argument. */
static void put_left(script *s) {
  const sbx__daytona_left *left = &s->session->left;
  sbx_buf_append_str(s->to, " '");
  for (size_t i = 0; i < left->count; i++) {
    sbx_buf_append_str(s->to, i > 0 ? " " : "");
    sbx_buf_append_str(s->to, left->tags[i]);
  }
  sbx_buf_append_char(s->to, '\'');
}

static void put_limit(script *s, uint64_t limit_ms) {
  if (limit_ms == SBX_NO_TIMEOUT)
    limit_ms = 0;
  put_number(s, limit_ms / 1000);
  if (limit_ms % 1000 != 0)
    sbx_buf_appendf(s->to, ".%03u", (unsigned)(limit_ms % 1000));
}

static void put_run(script *s, const sbx_exec_spec *spec, const char *tag, sbx__daytona_share share,
                    bool keep) {
  put_exports(s, spec);
  put_run_program(s, tag);
  put_limit(s, spec->timeout_ms);
  put_number(s, share.head);
  put_number(s, share.tail);
  put_number(s, spec->merge_streams ? 1 : 0);
  put_number(s, keep ? 1 : 0);
  sbx_buf_append_str(s->to, " '");
  put_str(s, how_to_run(spec));
  sbx_buf_append_char(s->to, '\'');
  put_number(s, spec->stdin_bytes.len > 0 ? 1 : 0);
  put_left(s);
  put_str(s, " 3<<'.' 4<<'.'\n");
  put_command_text(s, spec);
  put_document(s, spec->stdin_bytes);
}

/* For daemons that split the text into words by themselves: quotes, but no shell. */
static void wrap_for_old_shell(script *s) {
  static const char before[] = "sh -c \"echo '", after[] = "' | base64 -d | sh\"";
  sbx_json_escape(s->body, sbx_slice_str(before));
  size_t begin = s->body->len;
  sbx_base64_encode(s->body, sbx_buf_slice(&s->unwrapped));
  size_t len = sizeof before - 1 + (s->body->len - begin) + sizeof after - 1;
  sbx_json_escape(s->body, sbx_slice_str(after));
  s->to = s->body;
  if (s->unwrapped.error != SBX_OK)
    fail_script(s, s->unwrapped.error);
  else if (len > MAX_ARGUMENT)
    fail_script(s, SBX_ETOOBIG);
  sbx_buf_deinit(&s->unwrapped);
}

/* {"command": ..., "timeout": ..., "cwd": ..., "envs": ...} */
static int end_script(script *s, const sbx_exec_spec *spec, uint64_t limit_s) {
  sbx_json_out json = {.buf = s->body, .need_comma = true};
  if (s->to != s->body)
    wrap_for_old_shell(s);
  sbx_buf_append_char(s->body, '"');
  if (limit_s > 0 && limit_s <= UINT32_MAX) {
    sbx_json_put_name(&json, sbx_slice_str("timeout"));
    sbx_json_put_int(&json, (int64_t)limit_s);
  }
  if (spec != NULL) {
    sbx_buf dir;
    sbx_buf_init(&dir, SBX__DAYTONA_URL_MAX);
    sbx__daytona_absolute(&dir, s->session, spec->cwd);
    if (dir.len > 0) {
      sbx_json_put_name(&json, sbx_slice_str("cwd"));
      sbx_json_put_string(&json, sbx_buf_slice(&dir));
    }
    if (dir.error != SBX_OK)
      fail_script(s, dir.error);
    sbx_buf_deinit(&dir);
  }
  if (spec != NULL && spec->env_count > 0 && !s->session->old_env) {
    sbx_json_put_name(&json, sbx_slice_str("envs"));
    sbx_json_begin_object(&json);
    for (size_t i = 0; i < spec->env_count; i++) {
      sbx_json_put_name(&json, spec->env[i].name);
      sbx_json_put_string(&json, spec->env[i].value);
    }
    sbx_json_end_object(&json);
  }
  sbx_json_end_object(&json);
  return s->body->error;
}

int sbx__daytona_write_command(sbx_buf *out, const sbx_session *session, const sbx_exec_spec *spec,
                               const char *tag, sbx__daytona_share share, bool keep) {
  script s;
  uint64_t limit_s = 0;
  if (spec->timeout_ms != SBX_NO_TIMEOUT)
    limit_s = (spec->timeout_ms + 999) / 1000 + TOOLBOX_GRACE_S;
  begin_script(&s, out, session, sizeof escaped_run.text);
  put_run(&s, spec, tag, share, keep);
  return end_script(&s, spec, limit_s);
}

int sbx__daytona_write_fetch(sbx_buf *out, const sbx_session *session, const char *tag,
                             const uint64_t at[2], size_t most, bool over) {
  script s;
  begin_script(&s, out, session, sizeof fetch_program);
  put_program(&s, fetch_program, tag);
  put_number(&s, at[0]);
  put_number(&s, at[1]);
  put_number(&s, most);
  put_number(&s, over ? 1 : 0);
  put_str(&s, " </dev/null\n");
  return end_script(&s, NULL, FETCH_LIMIT_S);
}

int sbx__daytona_write_ask(sbx_buf *out, const sbx_session *session, const char *tag,
                           sbx__daytona_share share) {
  script s;
  begin_script(&s, out, session, sizeof ask_program);
  put_program(&s, ask_program, tag);
  put_number(&s, share.head);
  put_number(&s, share.tail);
  put_str(&s, " </dev/null\n");
  return end_script(&s, NULL, FETCH_LIMIT_S);
}

int sbx__daytona_write_forget(sbx_buf *out, const sbx_session *session, const char *tag) {
  script s;
  begin_script(&s, out, session, sizeof forget_program);
  put_program(&s, forget_program, tag);
  put_left(&s);
  put_str(&s, " </dev/null\n");
  return end_script(&s, NULL, FETCH_LIMIT_S);
}

int sbx__daytona_write_kill(sbx_buf *out, const sbx_session *session, const char *tag) {
  script s;
  begin_script(&s, out, session, sizeof kill_program);
  put_program(&s, kill_program, tag);
  put_str(&s, " </dev/null\n");
  return end_script(&s, NULL, KILL_LIMIT_S);
}

int sbx__daytona_write_list(sbx_buf *out, const sbx_session *session, const char *tag,
                            size_t most) {
  static const sbx_exec_spec in_base_directory;
  script s;
  begin_script(&s, out, session, sizeof list_program);
  put_program(&s, list_program, tag);
  put_number(&s, most);
  put_str(&s, " </dev/null\n");
  return end_script(&s, &in_base_directory, LIST_LIMIT_S);
}

/* ---- reading -------------------------------------------------------------------------------- */

void sbx__daytona_report_init(sbx__daytona_report *report) {
  *report = (sbx__daytona_report){.end = SBX__DAYTONA_RAN};
  for (int i = 0; i < 2; i++) {
    sbx_buf_init(&report->head[i], MAX_TEXT);
    sbx_buf_init(&report->tail[i], MAX_TEXT);
  }
}

void sbx__daytona_report_deinit(sbx__daytona_report *report) {
  for (int i = 0; i < 2; i++) {
    sbx_buf_deinit(&report->head[i]);
    sbx_buf_deinit(&report->tail[i]);
  }
}

static sbx_slice next_line(sbx_slice *rest) {
  size_t end = sbx_slice_find(*rest, '\n');
  sbx_slice line = sbx_slice_of(rest->ptr, end);
  *rest = sbx_slice_skip(*rest, end + 1);
  return line;
}

static sbx_slice next_word(sbx_slice *rest) {
  size_t end = sbx_slice_find(*rest, ' ');
  sbx_slice word = sbx_slice_of(rest->ptr, end);
  *rest = sbx_slice_skip(*rest, end + 1);
  return word;
}

static bool next_number(sbx_slice *rest, uint64_t most, uint64_t *out) {
  sbx_slice word = next_word(rest);
  uint64_t value = 0;
  if (word.len == 0 || word.len > 18)
    return false;
  for (size_t i = 0; i < word.len; i++) {
    if (!sbx_is_digit(word.ptr[i]))
      return false;
    value = value * 10 + (uint64_t)(word.ptr[i] - '0');
  }
  *out = value;
  return value <= most;
}

static bool read_end(sbx_slice word, sbx__daytona_end *out) {
  static const char *const names[] = {"ran",   "late",  "stopped", "unstored",
                                      "again", "going", "absent",  "ended"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (!sbx_slice_eq_str(word, names[i]))
      continue;
    *out = (sbx__daytona_end)i;
    return true;
  }
  return false;
}

/* The first line of the report; what stands before it was printed by others. */
static bool find_report(sbx_slice *rest, sbx_slice tag, sbx__daytona_report *report) {
  uint64_t code, gone;
  while (rest->len > 0) {
    sbx_slice line = next_line(rest);
    if (!sbx_slice_starts_with(line, tag) || !sbx_slice_eq(next_word(&line), tag))
      continue;
    if (!read_end(next_word(&line), &report->end) || !next_number(&line, 255, &code) ||
        !next_number(&line, 1, &gone) || !next_number(&line, UINT64_MAX, &report->size[0]) ||
        !next_number(&line, UINT64_MAX, &report->size[1]))
      return false;
    report->exit_code = (int)code;
    report->tree_gone = gone == 1;
    return true;
  }
  return false;
}

static bool read_parts(sbx__daytona_report *report, sbx_slice *rest) {
  for (int i = 0; i < 2; i++) {
    if (sbx_base64_decode(&report->head[i], next_line(rest)) != SBX_OK ||
        sbx_base64_decode(&report->tail[i], next_line(rest)) != SBX_OK)
      return false;
    if (report->head[i].len + report->tail[i].len > report->size[i])
      return false;
  }
  return true;
}

int sbx__daytona_read_report(sbx__daytona_report *report, sbx_slice printed, const char *tag,
                             sbx_err *err) {
  sbx_slice name = sbx_slice_str(tag), rest = printed;
  bool found = find_report(&rest, name, report);
  if (found && read_parts(report, &rest)) {
    sbx_slice last = next_line(&rest);
    if (sbx_slice_eq(next_word(&last), name) && sbx_slice_eq_str(last, "end"))
      return SBX_OK;
  }
  if (report->head[0].error == SBX_ENOMEM || report->head[1].error == SBX_ENOMEM)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  sbx_err_set(err, SBX_EPROTO,
              found ? "daytona: the report of the command is cut off"
                    : "daytona: the sandbox does not say how the command ended");
  if (!found && printed.len > 0) {
    sbx_err_append(err, ": ");
    sbx_err_append_remote(err, printed);
  }
  return SBX_EPROTO;
}

int sbx__daytona_read_reply(sbx__daytona_report *report, const sbx_http *reply, const char *tag,
                            sbx_slice *printed, sbx_json_doc **doc, sbx_err *err) {
  sbx_err why;
  *printed = sbx_slice_of(NULL, 0);
  int rc = sbx_json_parse(doc, sbx_buf_slice(&reply->body), &why);
  if (rc == SBX_ENOMEM)
    return sbx_err_set(err, rc, NULL);
  if (rc != SBX_OK || !sbx_json_string(sbx_json_get(sbx_json_root(*doc), "result"), printed))
    return sbx_err_set(err, SBX_EPROTO, "daytona: run a command: unexpected answer%s%s",
                       rc != SBX_OK ? ": " : "", rc != SBX_OK ? why.message : "");
  return sbx__daytona_read_report(report, *printed, tag, err);
}
