"""The store on a Postgres server, for teams and for runs that outlive a machine.

psycopg is loaded only here, when an address that begins with `postgresql://` is opened.
"""

from greenroom.errors import MissingExtra
from greenroom.installation import how_to_install

try:
    from greenroom.store.postgres.database import PostgresDatabase
except ModuleNotFoundError as error:
    raise MissingExtra(
        f"a store on a Postgres server needs the package {error.name!r}. Install it with "
        f"{how_to_install('postgres')}."
    ) from error

__all__ = ["PostgresDatabase"]
