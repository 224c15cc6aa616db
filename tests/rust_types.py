"""Write the messages and error codes for the crate from the OpenAPI document: `python -m tests.rust_types`."""

from tests.harness.constants import ROOT
from tests.harness.error_codes import openapi

FILE = ROOT / "clients" / "rust" / "client" / "src" / "messages.rs"
STRUCTS = (
    "Achievement", "BoardEntry", "BoardPage", "DailyChallenge", "Me", "Payload", "Progress", "Stats",
    "VerdictAnswer",
)  # fmt: skip
SIMPLE = {"number": "f64", "string": "String", "boolean": "bool"}
OWN = {
    "network": "No usable answer: none at all, a part of one, or one of another server.",
    "signed_out": "The device has no session, or the service has ended it.",
    "storage": "The store can't be read or written.",
}
HEAD = """//! Messages and error codes of the OpenAPI document. `make docs` writes this file.
#![allow(missing_docs)] // the reference describes the fields

use crate::numbers::{fastest, optional, whole};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

macro_rules! codes {
    ($($(#[$doc:meta])? $name:ident = $text:literal,)*) => {
        /// What kind of error this is: an `Error-Code` of the service, or one of this crate.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])? $name,)*
            /// A code of a newer service: treat it by its status.
            Other(String),
        }

        impl Code {
            /// The code of this text.
            pub fn of(text: &str) -> Code {
                match text {
                    $($text => Code::$name,)*
                    _ => Code::Other(text.to_owned()),
                }
            }

            /// The text of this code.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Code::$name => $text,)*
                    Code::Other(text) => text,
                }
            }
        }
    };
}
"""


def named(text):
    """A name of a type."""
    return "".join(part.capitalize() for part in text.split("_"))


def type_of(schema):
    """A schema as a type of Rust."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    if choices:
        return f"Option<{type_of(choices[0])}>"
    if schema["type"] == "array":
        return f"Vec<{type_of(schema['items'])}>"
    if schema["type"] == "object":
        return f"BTreeMap<String, {type_of(schema['additionalProperties'])}>"
    return SIMPLE.get(schema["type"]) or ("u64" if schema.get("minimum") == 0 else "i64")


def struct(name, schema):
    """A schema as a struct. Fields that are missing or null have their defaults."""
    lines = [f"/// {schema['description']}", "#[derive(Clone, Debug, Default, Serialize, Deserialize)]"]
    lines += ["#[serde(default)]", "#[non_exhaustive]", f"pub struct {name} {{"]
    for field, of in schema["properties"].items():
        kind = type_of(of)
        if field.endswith("fastest_win_seconds"):
            kind = "Option<u64>"
            lines += ["    /// None before the first win.", '    #[serde(deserialize_with = "fastest")]']
        elif kind in ("u64", "i64"):
            lines.append('    #[serde(deserialize_with = "whole")]')
        elif kind in ("Option<u64>", "Option<i64>"):
            lines.append('    #[serde(deserialize_with = "optional")]')
        lines.append(f"    pub {field}: {kind},")
    return [*lines, "}", ""]


def types():
    """The text of the file."""
    schemas = openapi()["components"]["schemas"]
    codes = [f'    {named(code)} = "{code}",' for code in sorted(schemas["ErrorCode"]["enum"])]
    own = [f'    /// {text}\n    {named(code)} = "{code}",' for code, text in OWN.items()]
    structs = [line for name in STRUCTS for line in struct(name, schemas[name])]
    return "\n".join([HEAD, "codes! {", *codes, *own, "}", "", *structs])


if __name__ == "__main__":
    FILE.write_text(types(), "utf-8")
