"""Answers JSON-e renders with the published Python package, one JSON line each.

Request: {"template": .., "context": ..}. Answer: {"result": ..}, {"error": class, "message": text} or
{"crash": text}, and always "quirks": the names of the known differences that this render came across.
The package is not changed, only watched; a test decides what a quirk excuses.
"""

import json
import sys

import jsone
from jsone import builtins, interpreter, parser, shared

# The package's function of the same name hides the module.
render = sys.modules["jsone.render"]

quirks = set()
INTEGERS = range(-(2**63), 2**64)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def holds(value, test):
    if isinstance(value, dict):
        return any(holds(inner, test) for inner in value.values())
    if isinstance(value, list):
        return any(holds(inner, test) for inner in value)
    return test(value)


def is_bool(value):
    return isinstance(value, bool)


def mixes_bools_and_numbers(left, right):
    return (holds(left, is_bool) and holds(right, is_number)) or (holds(left, is_number) and holds(right, is_bool))


class Crash(Exception):
    pass


def watched_interpreter():
    original = interpreter.Interpreter.visit_BinOp
    original_access = interpreter.Interpreter.visit_ValueAccess
    original_call = interpreter.Interpreter.visit_FunctionCall

    def visit_binary(self, node):
        kind = node.token.kind
        if kind == "**":
            quirks.add("power-evaluates-its-right-side-first")
            exponent, base = self.visit(node.left), self.visit(node.right)
            if is_number(exponent) and is_number(base) and (abs(exponent) > 64 or (base < 0 and exponent != int(exponent))):
                raise Crash("too large, or complex")
        elif kind not in ("||", "&&", "."):
            left, right = self.visit(node.left), self.visit(node.right)
            if kind in ("==", "!=", "in") and mixes_bools_and_numbers(left, right):
                quirks.add("true-equals-one")
            if kind in ("<", ">", "<=", ">=") and is_number(left) and is_number(right) and type(left) is not type(right):
                quirks.add("integers-and-floats-do-not-compare")
        result = original(self, node)
        if isinstance(result, int) and result not in INTEGERS:
            quirks.add("integers-beyond-64-bits")
        if isinstance(result, float) and (result != result or abs(result) == float("inf")):
            quirks.add("numbers-that-are-not-finite")
        return result

    def visit_access(self, node):
        value = self.visit(node.arr)
        ends = [self.visit(end) for end in (node.left, node.right) if end]
        if any(isinstance(end, bool) or end is None for end in ends):
            quirks.add("booleans-and-null-as-index")
        if any(isinstance(end, float) and end == int(end) for end in ends):
            quirks.add("whole-floats-are-no-index")
        if node.isInterval and isinstance(value, dict):
            quirks.add("objects-can-be-sliced")
        if not node.isInterval and node.right is not None:
            quirks.add("two-expressions-as-index")
        return original_access(self, node)

    def visit_call(self, node):
        callee = self.visit(node.name)
        if not callable(callee) and not isinstance(callee, str):
            quirks.add("python-text-in-messages")
        return original_call(self, node)

    interpreter.Interpreter.visit_BinOp = visit_binary
    interpreter.Interpreter.visit_ValueAccess = visit_access
    interpreter.Interpreter.visit_FunctionCall = visit_call


def watched_parser():
    original_unit = parser.Parser.parse_unit
    original_object = parser.Parser.parse_object

    def parse_unit(self):
        unit = original_unit(self)
        if unit is None and not (self.current_token and self.current_token.kind == "]"):
            quirks.add("a-missing-operand-is-noticed-late")
        return unit

    def parse_object(self):
        node = original_object(self)
        # Counts colons of this object only roughly; nested literals only make it more careful.
        if self.source.count(":") > len(node.obj):
            quirks.add("only-the-last-of-equal-keys-is-evaluated")
        return node

    parser.Parser.parse_unit = parse_unit
    parser.Parser.parse_object = parse_object


def watched_builtins():
    original = builtins.build
    original_text = shared.to_str

    def to_str(value):
        if isinstance(value, float):
            quirks.add("floats-keep-their-point-as-text")
        if callable(value):
            quirks.add("functions-have-a-text")
        return original_text(value)

    def watch(name, function):
        def call(context, *arguments):
            if name == "join" and arguments and isinstance(arguments[0], list):
                if not all(isinstance(item, str) or (isinstance(item, int) and not is_bool(item)) for item in arguments[0]):
                    quirks.add("join-takes-anything-as-python-text")
            if name == "join" and len(arguments) == 2 and isinstance(arguments[1], float):
                quirks.add("floats-keep-their-point-as-text")
            if name == "split" and len(arguments) == 2 and is_number(arguments[1]):
                quirks.add("splitting-at-zero-splits-everywhere")
            if name == "range" and any(is_bool(argument) or isinstance(argument, float) for argument in arguments):
                quirks.add("range-takes-booleans-but-no-floats")
            return function(context, *arguments)

        call._jsone_builtin = True
        return call

    builtins.build = lambda: {name: watch(name, function) for name, function in original().items()}
    builtins.to_str = shared.to_str = render.to_str = to_str


def watched_operators():
    original_find, original_match = render.operators["$find"], render.operators["$match"]
    original_sort, original_json = render.operators["$sort"], render.operators["$json"]

    def find(template, context):
        elements = render.renderValue(template["$find"], context)
        try:
            found = original_find(template, context)
        except Exception:
            quirks.add("find-renders-what-it-found")
            raise
        if found is not shared.DeleteMarker and found not in elements:
            quirks.add("find-renders-what-it-found")
        return found

    def match(template, context):
        result = original_match(template, context)
        if shared.DeleteMarker in result:
            quirks.add("match-keeps-what-vanishes")
        return result

    def sort(template, context):
        try:
            result = original_sort(template, context)
        except shared.TemplateError:
            quirks.add("integers-and-floats-do-not-sort")
            raise
        keys = result
        for by in template:
            if by.startswith("by("):
                keys = [render.parse(template[by], dict(context, **{by[3:-1]: element})) for element in result]
        if any(is_bool(key) for key in keys):
            quirks.add("booleans-sort-as-integers")
        return result

    def to_json(template, context):
        try:
            text = original_json(template, context)
        except shared.TemplateError:
            quirks.add("json-of-what-vanishes-is-an-error")
            raise
        if any(isinstance(value, float) for value in scalars(json.loads(text))):
            quirks.add("floats-keep-their-point-as-text")
        return text

    def scalars(value):
        if isinstance(value, dict):
            return [inner for item in value.values() for inner in scalars(item)]
        if isinstance(value, list):
            return [inner for item in value for inner in scalars(item)]
        return [value]

    render.operators.update({"$find": find, "$match": match, "$sort": sort, "$json": to_json})


def answer(request):
    quirks.clear()
    try:
        answered = {"result": jsone.render(request["template"], request["context"])}
        json.dumps(answered, allow_nan=False)
    except shared.JSONTemplateError as error:
        answered = {"error": type(error).__name__, "message": str(error)}
        if "\\u" in answered["message"]:
            quirks.add("locations-are-ascii")
    except BaseException as error:
        answered = {"crash": "%s: %s" % (type(error).__name__, error)}
    answered["quirks"] = sorted(quirks)
    return answered


def main():
    watched_interpreter()
    watched_parser()
    watched_builtins()
    watched_operators()
    for line in sys.stdin:
        # Python walks objects as they were written; here they are always walked in key order.
        request = json.loads(json.dumps(json.loads(line), sort_keys=True))
        print(json.dumps(answer(request)), flush=True)


main()
