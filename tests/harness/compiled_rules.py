"""Compiling the rules of routes once a process, instead of for each service that a test starts.

For each rule, werkzeug compiles a function that builds URLs. solisync never calls these functions, but compiling them
takes a third of the time of making a service.
"""

from werkzeug.routing import Map, Rule


def compile_rules_once():
    """Make equal rules share the function that builds URLs."""
    compiled = {}
    compile_builder = Rule._compile_builder

    def shared(rule, append_unknown=True):
        key = (rule.rule, append_unknown)
        if key not in compiled:
            compiled[key] = compile_builder(rule, append_unknown)
        return compiled[key]

    Rule._compile_builder = shared


def compile_rules(routes):
    """Compile the rules of these routes."""
    Map([Rule(route.path.replace("{", "<").replace("}", ">")) for route in routes])
