"""The rules of routes are compiled once a process, and not for each service that a test starts.

werkzeug makes a function for each rule that builds URLs of it, which solisync never calls: a third of what it takes to
make a service.
"""

from werkzeug.routing import Map, Rule


def compile_rules_once():
    """Let rules of the same text share these functions."""
    compiled = {}
    compile_builder = Rule._compile_builder

    def shared(rule, append_unknown=True):
        key = (rule.rule, append_unknown)
        if key not in compiled:
            compiled[key] = compile_builder(rule, append_unknown)
        return compiled[key]

    Rule._compile_builder = shared


def compile_rules(routes):
    """Do it for these routes now."""
    Map([Rule(route.path.replace("{", "<").replace("}", ">")) for route in routes])
