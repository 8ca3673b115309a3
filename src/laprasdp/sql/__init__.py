"""What a statement means: text becomes queries, files become statements."""

from laprasdp.sql.parse import Statement, parse
from laprasdp.sql.statements import Fragment, split

__all__ = ["Fragment", "Statement", "parse", "split"]
