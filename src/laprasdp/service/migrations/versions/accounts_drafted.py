"""The third schema: predictions that a curator has set before the ledger is begun."""

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    op.create_table(
        "lapras_drafted",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("predictions", sa.Text),
        sa.Column("settled", sa.Boolean, nullable=False),
    )
