"""Where the api listens and who may use it: read once, from the environment, by the process that starts."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import NoDecode

from db.settings import Settings as DatabaseSettings

MIN_TOKEN_LENGTH = 16


class Access(DatabaseSettings):
    """Where the data lies, and the token: what a command needs that does not listen.

    Raises:
        ValueError: a token that is too short or that no header can carry, a file that cannot be read, or both.
    """

    token: SecretStr | None = Field(None, description="bearer token that every request must carry")
    token_file: Path | None = Field(None, description="file that holds the token, such as a compose secret")

    @model_validator(mode="after")
    def _check_token(self) -> Self:
        if self.token is not None and self.token_file is not None:
            raise ValueError("both BLOCKWRIGHT_TOKEN and BLOCKWRIGHT_TOKEN_FILE are set; one is right")
        if self.token_file is not None:
            try:
                token = SecretStr(self.token_file.read_text().strip())
            except (OSError, UnicodeDecodeError) as error:
                raise ValueError(f"cannot read the token file {self.token_file}: {error}") from None
            object.__setattr__(self, "token", token)  # the class is frozen
        if self.token is not None and len(self.token.get_secret_value()) < MIN_TOKEN_LENGTH:
            raise ValueError(f"the token is too short; at least {MIN_TOKEN_LENGTH} characters")
        if self.token is not None and not re.fullmatch(r"[\x21-\x7e]+", self.token.get_secret_value()):
            raise ValueError("the token holds a space, a line end or a character beyond ASCII; a header carries none")
        return self


class Settings(Access):
    """Environment variables carry the prefix BLOCKWRIGHT_, such as BLOCKWRIGHT_PORT.

    Raises:
        ValueError: as `Access`, or another address than loopback without a token.
    """

    host: str = Field("127.0.0.1", description="address to listen on; anything but loopback needs a token")
    port: int = Field(8400, ge=0, le=65535, description="0: any free port")
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="names by which clients may call, besides loopback's; separated by commas"
    )
    max_body_size: int = Field(2 * 1024 * 1024, ge=1024, description="bytes of a request body, but for uploaded files")
    # Read and encoded in bounded memory and mapped by trials (docs/limits.md); what it takes is disk, about twice as
    # much, as its token ids are kept beside it.
    max_dataset_bytes: int = Field(4 * 2**30, ge=1, description="bytes of an uploaded file, and of what it holds")
    max_uploads: int = Field(4, ge=1, description="files that are uploaded and read at once")
    upload_patience_s: float = Field(60, gt=0, description="seconds in which the next 256 KiB of a file must arrive")
    read_timeout_s: float = Field(1800, gt=0, description="seconds in which an uploaded file must have been read")
    max_streams: int = Field(256, ge=1, description="event streams at once")

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_address(self) -> Self:
        if self.token is None and not is_loopback(self.host):
            raise ValueError(
                f"refusing to listen on {self.host} without a token; set BLOCKWRIGHT_TOKEN or BLOCKWRIGHT_TOKEN_FILE,"
                " or listen on 127.0.0.1"
            )
        return self


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address; names other than localhost may resolve to anything."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
