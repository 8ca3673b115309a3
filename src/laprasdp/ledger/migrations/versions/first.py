"""The first schema: datasets, their entries and where each chain ends; entries can only be added."""

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None

_KEPT = ("lapras_dataset", "lapras_entry")


def upgrade() -> None:
    op.create_table(
        "lapras_dataset",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("format", sa.Integer, nullable=False),
    )
    op.create_table(
        "lapras_entry",
        sa.Column("dataset", sa.Integer, sa.ForeignKey("lapras_dataset.id"), primary_key=True),
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("analyst", sa.Text),
        sa.Column("price", sa.Text),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
    )
    op.create_table(
        "lapras_head",
        sa.Column("dataset", sa.Integer, sa.ForeignKey("lapras_dataset.id"), primary_key=True),
        sa.Column("entries", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        for table in _KEPT:
            for act in ("UPDATE", "DELETE"):
                op.execute(
                    f"CREATE TRIGGER {table}_{act.lower()} BEFORE {act} ON {table} "
                    "BEGIN SELECT RAISE(ABORT, 'what a ledger keeps is never changed'); END"
                )
        return
    op.execute(
        "CREATE FUNCTION lapras_keep() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'what a ledger keeps is never changed'; END $$"
    )
    for table in _KEPT:
        op.execute(
            f"CREATE TRIGGER {table}_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION lapras_keep()"
        )


def downgrade() -> None:
    raise NotImplementedError("a ledger has no version before the first")
