"""Records what Jinja2's own test suite renders, for src/jinja/jinja2_tests.rs. Run by hand, never by a build.

    for release in 3.1.6 2.11.3 2.10.3; do pip download --no-binary :all: --no-deps jinja2==$release; done
    for file in ?inja2-*.tar.gz; do tar xzf $file; done
    sed -i 's/def pytest_ignore_collect/def ignored/' Jinja2-2.1*/tests/conftest.py
    pip install jinja2==3.1.6 pytest trio
    python record_jinja2.py fixtures/jinja2-calls.json jinja2-3.1.6/tests Jinja2-2.11.3/tests Jinja2-2.10.3/tests

Each call of a template's render, in whatever way, becomes {name, source, context, options, output}: the name is the
test's with a word for the way and a number, `context` is null where it is not JSON, `options` are the environment's
settings that differ from Jinja2's defaults. Calls that raise have no output and are left out. What a native template
gives is recorded as text.

Where a context is not JSON, or where settings differ, the call is repeated on a plain environment with the nearest JSON
(lists for tuples and ranges, dictionaries for objects, without what is neither; with the environment's own globals where
it has any): if Jinja2 writes the same then, that is what is recorded.

The suites of older releases run with the newest Jinja2, so that every output is its own; some of their tests fail then,
which changes nothing in what was rendered. Of them stands here, with the release before its name, what no suite before
has and what has a plain environment and a context of JSON.
"""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import types

import jinja2
import jinja2.environment as environment
import jinja2.loaders as loaders
import jinja2.filters
import jinja2.nativetypes as nativetypes
import jinja2.utils
import markupsafe
import pytest

SETTINGS = [
    "block_start_string", "block_end_string", "variable_start_string", "variable_end_string", "comment_start_string",
    "comment_end_string", "line_statement_prefix", "line_comment_prefix", "trim_blocks", "lstrip_blocks",
    "newline_sequence", "keep_trailing_newline", "sandboxed", "is_async",
]
calls = []
current = {"test": "", "numbers": {}, "inside": False}
plain = jinja2.Environment()
from_string, render = environment.Environment.from_string, environment.Template.render
render_async, generate = environment.Template.render_async, environment.Template.generate
native_render, load = nativetypes.NativeTemplate.render, loaders.BaseLoader.load


def as_json(value):
    """The value itself where JSON says all of it; raises TypeError where it does not."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float and value == value and abs(value) != float("inf"):
        return value
    if kind is list:
        return [as_json(item) for item in value]
    if kind is dict and all(type(key) is str for key in value):
        return {key: as_json(item) for key, item in value.items()}
    raise TypeError(kind)


def nearest_json(value):
    """As `as_json`, with lists for what can be gone through twice."""
    kind = type(value)
    if kind in (list, tuple, range) or kind.__name__ in ("dict_items", "dict_keys", "dict_values"):
        return [nearest_json(item) for item in value]
    if kind is dict:
        return {str(key) if type(key) is int else key: nearest_json(item) for key, item in value.items()}
    if type(getattr(value, "__dict__", None)) is dict and not callable(value) and not isinstance(value, str):
        return nearest_json(vars(value))
    return as_json(value)


def nearest_context(names):
    """What of a context is JSON, nearly; the rest may be something that the template never asks for."""
    context = {}
    for name, value in names.items():
        try:
            context[name] = nearest_json(value)
        except (TypeError, ValueError):
            pass
    return context


def plainly(source, context, escaped):
    """What a plain environment makes of it, or nothing."""
    try:
        json.dumps(context).encode("utf-8")
        return str(render(from_string(jinja2.Environment(autoescape=escaped), source), **context))
    except Exception:
        return None


def simplified(call, context):
    """The call as plain as it can be without another output."""
    for escaped in (False, True):
        if escaped and call["options"].get("autoescape") is not True:
            continue
        if context is not None and plainly(call["source"], context, escaped) == call["output"]:
            return call | {"context": context, "options": {"autoescape": True} if escaped else {}}
    return call


def options_of(env):
    options = {name: getattr(env, name) for name in SETTINGS if getattr(env, name) != getattr(plain, name)}
    if env.autoescape is not False:
        options["autoescape"] = True if env.autoescape is True else "by name"
    if env.undefined is not plain.undefined:
        options["undefined"] = env.undefined.__name__
    if env.finalize is not None:
        options["finalize"] = True
    if env.extensions:
        options["extensions"] = sorted(name.rsplit(".", 1)[-1] for name in env.extensions)
    if set(env.globals) - set(plain.globals) or set(env.filters) - set(plain.filters) or set(env.tests) - set(plain.tests):
        options["additions"] = True
    if env.policies != plain.policies:
        options["policies"] = True
    if type(env) is not environment.Environment and "sandboxed" not in options:
        options["environment"] = type(env).__name__
    return options


def recording_from_string(self, source, globals=None, template_class=None):
    template = from_string(self, source, globals, template_class)
    if isinstance(source, str):
        template.recorded_source, template.recorded_globals = source, globals or {}
    return template


def recording_load(self, environment, name, globals=None):
    template = load(self, environment, name, globals)
    template.recorded_source, template.recorded_globals = self.get_source(environment, name)[0], globals or {}
    return template


def keep(template, kind, given, output):
    """Notes a call down; what is no text by itself, as the text that it is."""
    source = getattr(template, "recorded_source", None)
    if source is None or current["inside"]:
        return
    try:
        context = as_json(given)
        json.dumps(context).encode("utf-8")
    except (TypeError, ValueError):
        context = None
    number = current["numbers"][kind] = current["numbers"].get(kind, 0) + 1
    options = options_of(template.environment)
    own = {name: item for name, item in template.environment.globals.items() if name not in plain.globals}
    own |= template.recorded_globals
    if own:
        options["additions"] = True
    name = f"{current['test']}{kind}#{number}"
    call = {"name": name, "source": source, "context": context, "options": options, "output": str(output)}
    if options or context is None:
        call = simplified(call, nearest_context(given))
    if call["options"].get("additions"):
        call = simplified(call, nearest_context(own | given))
    calls.append(call)


def kept(render, kind):
    """Renders, and notes it down."""
    def recording(self, *args, **kwargs):
        given = dict(*args, **kwargs)
        generators = [key for key, item in given.items() if isinstance(item, types.GeneratorType)]
        for key in generators:
            given[key] = list(given[key])
        # what could be gone through only once has just been gone through
        kwargs = {key: iter(item) if key in generators else item for key, item in given.items()}
        outer, current["inside"] = current["inside"], True
        try:
            output = render(self, **kwargs)
        finally:
            current["inside"] = outer
        keep(self, kind, given, output)
        return output
    return recording


async def recording_render_async(self, *args, **kwargs):
    output = await render_async(self, *args, **kwargs)
    keep(self, " async", dict(*args, **kwargs), output)
    return output


def recording_generate(self, *args, **kwargs):
    parts = list(generate(self, *args, **kwargs))
    keep(self, " in parts", dict(*args, **kwargs), "".join(parts))
    yield from parts


class Recorder:
    def pytest_runtest_setup(self, item):
        current["test"], current["numbers"] = f"{item.path.name}::{item.nodeid.split('::', 1)[1]}", {}


def remember_old_names(tests):
    """What older suites import and Jinja2 has no more; none of it renders anything."""
    paths = [pathlib.Path(tests, path) for path in ("../src/jinja2/_compat.py", "../jinja2/_compat.py")]
    for file in filter(pathlib.Path.exists, paths):
        spec = importlib.util.spec_from_file_location("jinja2._compat", file)
        module = sys.modules["jinja2._compat"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for module in (jinja2, jinja2.utils, jinja2.filters):
            for kind, new in (("context", "context"), ("environment", "environment"), ("evalcontext", "eval_context")):
                for what in ("function", "filter"):
                    setattr(module, kind + what, getattr(jinja2, "pass_" + new))
            module.Markup, module.escape, module.have_async_gen = markupsafe.Markup, markupsafe.escape, True


def record(tests, target):
    remember_old_names(tests)
    environment.Environment.from_string = recording_from_string
    environment.Template.render = kept(render, "")
    environment.Template.render_async = recording_render_async
    environment.Template.generate = recording_generate
    nativetypes.NativeTemplate.render = kept(native_render, " native")
    loaders.BaseLoader.load = recording_load
    options = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", "--continue-on-collection-errors", tests]
    code = pytest.main(options, plugins=[Recorder()])
    calls.sort(key=lambda call: (call["name"].split("#")[0], int(call["name"].split("#")[-1])))
    with open(target, "w", encoding="utf-8") as file:
        json.dump(calls, file)
    sys.exit(code)


def identity(call):
    return json.dumps([call["source"], call["context"], call["options"]], sort_keys=True)


def main():
    if sys.argv[1] == "--one":
        return record(*sys.argv[2:])
    target, *suites = sys.argv[1:]
    names, known, lines = set(), set(), []
    for suite in suites:
        with tempfile.NamedTemporaryFile() as file:
            code = subprocess.run([sys.executable, __file__, "--one", suite, file.name]).returncode
            if code != 0 and suite == suites[0]:
                sys.exit("the suite itself does not pass")
            recorded = json.load(file)
        if suite != suites[0]:
            # Of an older suite what the newest has not, and what can be asked here.
            release = suite.strip("/").split("/")[-2].split("-")[-1]
            recorded = [call | {"name": f"{release} {call['name']}"} for call in recorded]
            plainest = [call for call in recorded if call["context"] is not None and set(call["options"]) <= {"autoescape"}]
            recorded = []
            for call in plainest:
                if identity(call) not in known:
                    known.add(identity(call))
                    recorded.append(call)
        for call in recorded:
            known.add(identity(call))
            if call["name"] not in names:
                names.add(call["name"])
                lines.append(json.dumps(call, ensure_ascii=True))
    with open(target, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(lines) + "\n]\n")
    print(len(lines), "calls,", len(known), "distinct ones")


if __name__ == "__main__":
    main()
