"""Records what Jinja2's own test suite renders, for tests/jinja2_calls.rs. Run by hand, never by a build.

    pip download --no-binary :all: --no-deps jinja2==3.1.6 && tar xzf jinja2-3.1.6.tar.gz
    pip install jinja2==3.1.6 pytest trio
    python record_jinja2.py jinja2-3.1.6/tests fixtures/jinja2-calls.json

Each call of Template.render on a template made from a string becomes {name, source, context, options, output}: the
name is the test's and a number, `context` is null where it is not JSON, `options` are the environment's settings that
differ from Jinja2's defaults. Calls that raise have no output and are left out.

Where a context is not JSON, or where settings differ, the call is repeated on a plain environment with the nearest JSON
(lists for tuples and ranges, dictionaries for objects, without what is neither): if Jinja2 writes the same then, that is
what is recorded.
"""

import json
import sys
import types

import jinja2
import jinja2.environment as environment
import pytest

SETTINGS = [
    "block_start_string", "block_end_string", "variable_start_string", "variable_end_string", "comment_start_string",
    "comment_end_string", "line_statement_prefix", "line_comment_prefix", "trim_blocks", "lstrip_blocks",
    "newline_sequence", "keep_trailing_newline", "sandboxed", "is_async",
]
calls = []
current = {"test": "", "number": 0}
plain = jinja2.Environment()
from_string, render = environment.Environment.from_string, environment.Template.render


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
    if type(env).__module__.split(".")[0] != "jinja2":
        options["environment"] = type(env).__name__
    return options


def recording_from_string(self, source, globals=None, template_class=None):
    template = from_string(self, source, globals, template_class)
    if isinstance(source, str):
        template.recorded_source, template.recorded_globals = source, bool(globals)
    return template


def recording_render(self, *args, **kwargs):
    source = getattr(self, "recorded_source", None)
    try:
        context = as_json(dict(*args, **kwargs))
        json.dumps(context).encode("utf-8")
    except (TypeError, ValueError):
        context = None
    given = dict(*args, **kwargs)
    generators = [key for key, item in given.items() if isinstance(item, types.GeneratorType)]
    for key in generators:
        given[key] = list(given[key])
    nearest = nearest_context(given)
    # what could be gone through only once has just been gone through
    args, kwargs = (), {key: iter(item) if key in generators else item for key, item in given.items()}
    output = render(self, *args, **kwargs)
    if source is not None and isinstance(output, str):
        current["number"] += 1
        options = options_of(self.environment)
        if self.recorded_globals:
            options["additions"] = True
        name = f"{current['test']}#{current['number']}"
        call = {"name": name, "source": source, "context": context, "options": options, "output": str(output)}
        calls.append(simplified(call, nearest) if options or context is None else call)
    return output


class Recorder:
    def pytest_runtest_setup(self, item):
        current["test"], current["number"] = f"{item.path.name}::{item.nodeid.split('::', 1)[1]}", 0


def main():
    tests, target = sys.argv[1:]
    environment.Environment.from_string = recording_from_string
    environment.Template.render = recording_render
    code = pytest.main(["-q", "-p", "no:randomly", "-p", "no:cacheprovider", tests], plugins=[Recorder()])
    if code != 0:
        sys.exit("the suite itself does not pass")
    calls.sort(key=lambda call: (call["name"].split("#")[0], int(call["name"].split("#")[-1])))
    seen = set()
    distinct = [call for call in calls if not (call["name"] in seen or seen.add(call["name"]))]
    with open(target, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(call, ensure_ascii=True) for call in distinct) + "\n]\n")
    print(len(distinct), "calls")


if __name__ == "__main__":
    main()
