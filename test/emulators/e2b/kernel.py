"""A small persistent Python kernel: runs cells that arrive as JSON lines on standard input and reports on
descriptor 3, one JSON object per line. State lives in one namespace, as in a notebook."""

import ast
import asyncio
import base64
import builtins
import inspect
import io
import json
import linecache
import os
import signal
import sys
import traceback
import types

commands = os.fdopen(os.dup(0), "r", encoding="utf-8")
events = os.fdopen(os.dup(3), "w", encoding="utf-8")
os.close(3)
null = os.open(os.devnull, os.O_RDONLY)
os.dup2(null, 0)
os.close(null)

MIME = {
    "text/html": ("html", "_repr_html_"),
    "text/markdown": ("markdown", "_repr_markdown_"),
    "image/svg+xml": ("svg", "_repr_svg_"),
    "image/png": ("png", "_repr_png_"),
    "image/jpeg": ("jpeg", "_repr_jpeg_"),
    "application/pdf": ("pdf", "_repr_pdf_"),
    "text/latex": ("latex", "_repr_latex_"),
    "application/json": ("json", "_repr_json_"),
    "application/javascript": ("javascript", "_repr_javascript_"),
}

FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
RED, CYAN, GREEN, PLAIN = "\x1b[0;31m", "\x1b[0;36m", "\x1b[0;32m", "\x1b[0m"


def emit(kind, **fields):
    events.write(json.dumps({"type": kind, **fields}) + "\n")
    events.flush()


class Output(io.TextIOBase):
    """What a cell prints, passed on line by line."""

    encoding = "utf-8"

    def __init__(self, name):
        self.name = name
        self.pending = ""

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self.pending += text
        if "\n" in text or len(self.pending) > 8192:
            self.flush()
        return len(text)

    def flush(self):
        if self.pending:
            text, self.pending = self.pending, ""
            emit(self.name, text=text)


class StdinNotImplementedError(NotImplementedError):
    pass


def no_input(prompt=""):
    raise StdinNotImplementedError("raw_input was called, but this frontend does not support input requests.")


def bundle(value):
    """The representations of a value, by the names used on the wire."""
    found = {"text": repr(value)}
    if isinstance(value, type):
        return found
    whole = getattr(value, "_repr_mimebundle_", None)
    given = whole() if callable(whole) else None
    if isinstance(given, tuple):
        given = given[0]
    for mime, (name, method) in MIME.items():
        data = (given or {}).get(mime)
        if data is None and callable(getattr(value, method, None)):
            data = getattr(value, method)()
        if data is None:
            continue
        found[name] = base64.b64encode(data).decode() if isinstance(data, bytes) else data
    if given and "text/plain" in given:
        found["text"] = given["text/plain"]
    return found


def flush():
    sys.stdout.flush()
    sys.stderr.flush()


def display(*values, **_):
    flush()
    for value in values:
        emit("result", data=bundle(value), main=False)


def provide_display():
    """`from IPython.display import ...` works where IPython is not installed."""

    def shown(name, method):
        def init(self, data):
            self.data = data

        return type(name, (), {"__init__": init, method: lambda self: self.data})

    module = types.ModuleType("IPython.display")
    module.display = display
    for name, method in (("HTML", "_repr_html_"), ("Markdown", "_repr_markdown_"), ("JSON", "_repr_json_"), ("SVG", "_repr_svg_")):
        setattr(module, name, shown(name, method))
    parent = types.ModuleType("IPython")
    parent.display = module
    sys.modules["IPython"], sys.modules["IPython.display"] = parent, module


def report(error, cell):
    """An error with a coloured traceback of the user's own frames."""
    name = type(error).__name__
    lines = [RED + "-" * 75 + PLAIN, f"{RED}{name}{PLAIN}{' ' * max(1, 42 - len(name))}Traceback (most recent call last)"]
    if isinstance(error, SyntaxError) and error.filename == cell:
        lines = traceback.format_exception_only(type(error), error)
        lines = [line.rstrip("\n") for line in lines]
    else:
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename == __file__:
                continue
            where = frame.filename
            if where.startswith("<cell "):
                where = f"Cell {GREEN}In[{where[6:-1]}]{PLAIN}"
            lines.append(f"{where}, line {frame.lineno}, in {CYAN}{frame.name}{PLAIN}")
            if frame.line:
                lines.append(f"{GREEN}----> {frame.lineno}{PLAIN} {frame.line}")
        lines.append(f"\n{RED}{name}{PLAIN}: {error}")
    emit("error", name=name, value=str(error), traceback="\n".join(lines))


def run_code(code, mode, namespace, loop):
    if code.co_flags & inspect.CO_COROUTINE:
        return loop.run_until_complete(eval(code, namespace))
    return eval(code, namespace) if mode == "eval" else exec(code, namespace)


class Interrupts:
    """An interrupt ends a running cell, and nothing else."""

    allowed = False

    @classmethod
    def handle(cls, _number, _frame):
        if cls.allowed:
            cls.allowed = False
            raise KeyboardInterrupt


def run_cell(source, number, namespace, loop):
    cell = f"<cell {number}>"
    linecache.cache[cell] = (len(source), None, source.splitlines(True), cell)
    try:
        Interrupts.allowed = True
        tree = ast.parse(source, cell)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        run_code(compile(tree, cell, "exec", FLAGS), "exec", namespace, loop)
        if last is None:
            return
        value = run_code(compile(ast.Expression(last.value), cell, "eval", FLAGS), "eval", namespace, loop)
        if value is None or source.rstrip().endswith(";"):
            return
        namespace["_"] = value
        flush()
        emit("result", data=bundle(value), main=True)
    except BaseException as error:
        Interrupts.allowed = False
        flush()
        report(error, cell)
    finally:
        Interrupts.allowed = False


def main():
    module = types.ModuleType("__main__")
    module.__builtins__ = builtins
    sys.modules["__main__"] = module
    sys.path.insert(0, "")
    builtins.input = no_input
    builtins.display = display
    try:
        import IPython.display
    except ImportError:
        provide_display()
    sys.stdout, sys.stderr = Output("stdout"), Output("stderr")
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    number = 0
    signal.signal(signal.SIGINT, Interrupts.handle)
    for line in iter(commands.readline, ""):
        command = json.loads(line)
        if not command["silent"]:
            number += 1
        run_cell(command["code"], number, module.__dict__, loop)
        flush()
        emit("done")


main()
