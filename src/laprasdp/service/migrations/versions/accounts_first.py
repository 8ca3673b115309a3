"""The first schema: principals, their tokens, browsers that are signed in, and repeated requests."""

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "lapras_principal",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("cap", sa.Float),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.Column("made", sa.Float, nullable=False),
        sa.Column("seen", sa.Float),
    )
    op.create_table(
        "lapras_token",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("principal", sa.Integer, sa.ForeignKey("lapras_principal.id"), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False, unique=True),
        sa.Column("made", sa.Float, nullable=False),
        sa.Column("expires", sa.Float),
        sa.Column("revoked", sa.Float),
    )
    op.create_table(
        "lapras_browser",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("token", sa.Integer, sa.ForeignKey("lapras_token.id"), nullable=False),
        sa.Column("expires", sa.Float, nullable=False),
    )
    op.create_table(
        "lapras_repeated",
        sa.Column("principal", sa.Integer, sa.ForeignKey("lapras_principal.id"), primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("entries", sa.Integer, nullable=False),
        sa.Column("made", sa.Float, nullable=False),
        sa.Column("answer", sa.Text),
    )
