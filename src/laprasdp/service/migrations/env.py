"""How a migration runs: on the connection, and inside the transaction, of whoever opens the accounts."""

from alembic import context

from laprasdp.service.accounts_tables import METADATA, VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    transactional_ddl=False,  # the transaction is already open, and ends outside
)
context.run_migrations()
