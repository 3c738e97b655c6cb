"""Where the data lives: read once, by the process that starts."""

from __future__ import annotations

from pathlib import Path
from typing import Self
from urllib.parse import quote, urlsplit, urlunsplit

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """BLOCKWRIGHT_DATA_DIR, BLOCKWRIGHT_DATABASE_URL and BLOCKWRIGHT_DATABASE_PASSWORD_FILE.

    Raises:
        ValueError: as `with_password`.
    """

    model_config = SettingsConfigDict(env_prefix="BLOCKWRIGHT_", extra="ignore", frozen=True)

    data_dir: Path = Field(
        default_factory=lambda: Path.home() / ".local" / "share" / "blockwright",
        description="folder of the SQLite file, the searches' files and the data sets; absolute after reading",
    )
    database_url: str = Field(
        "",
        repr=False,  # it may carry a password
        description="sqlite:///FILE or postgresql+psycopg://...; empty: blockwright.db in the data folder",
    )
    database_password_file: Path | None = Field(
        None, description="file that holds the password for the database URL, such as a compose secret"
    )

    @model_validator(mode="after")
    def _fill_in(self) -> Self:
        # object.__setattr__: the class is frozen, and these two depend on each other
        object.__setattr__(self, "data_dir", self.data_dir.expanduser().absolute())
        if not self.database_url:
            # quoted: in a URL, ? would end the path and %41 mean A
            path = quote(str(self.data_dir / "blockwright.db"))
            object.__setattr__(self, "database_url", f"sqlite:///{path}")
        if self.database_password_file is not None:
            url = with_password(self.database_url, self.database_password_file)
            object.__setattr__(self, "database_url", url)
        return self


def with_password(url: str, file: Path) -> str:
    """The URL with the password that a file holds; one that it carries already must be the same.

    Raises:
        ValueError: the file cannot be read or is empty, the URL takes no password, or it carries another.
    """
    try:
        password = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read the database password file {file}: {error}") from None
    if not password:
        raise ValueError(f"the database password file {file} is empty")
    parts = urlsplit(url)
    if not parts.username:
        raise ValueError(
            "BLOCKWRIGHT_DATABASE_PASSWORD_FILE is set, but the database URL names no user;"
            " it looks like postgresql+psycopg://user@host/name"
        )
    if parts.password not in (None, quote(password, safe="")):
        raise ValueError("the database URL carries another password than BLOCKWRIGHT_DATABASE_PASSWORD_FILE")
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username}:{quote(password, safe='')}@{host}"))
