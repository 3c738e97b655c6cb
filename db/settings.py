"""Where the data lives: read once, by the process that starts."""

from __future__ import annotations

from pathlib import Path
from typing import Self
from urllib.parse import quote

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """BLOCKWRIGHT_DATA_DIR and BLOCKWRIGHT_DATABASE_URL."""

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

    @model_validator(mode="after")
    def _fill_in(self) -> Self:
        # object.__setattr__: the class is frozen, and these two depend on each other
        object.__setattr__(self, "data_dir", self.data_dir.expanduser().absolute())
        if not self.database_url:
            # quoted: in a URL, ? would end the path and %41 mean A
            path = quote(str(self.data_dir / "blockwright.db"))
            object.__setattr__(self, "database_url", f"sqlite:///{path}")
        return self
