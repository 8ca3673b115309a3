"""The second schema: browsers that were sent to an identity provider."""

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"


def upgrade() -> None:
    op.create_table(
        "lapras_pending",
        sa.Column("state", sa.Text, primary_key=True),
        sa.Column("cookie", sa.Text, nullable=False),
        sa.Column("nonce", sa.Text, nullable=False),
        sa.Column("verifier", sa.Text, nullable=False),
        sa.Column("expires", sa.Float, nullable=False),
    )
