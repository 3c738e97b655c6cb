"""What the service answers of the blocks, tasks and tokenizers that a request may name."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class Reach(BaseModel):
    """What a candidate can do beyond the length it was trained at."""

    longest: int | None = Field(description="tokens that an input may have; null: any number")
    why: str = Field(description="one sentence for people, in lower case")


class Block(BaseModel):
    """A block that candidates may name."""

    name: str
    description: str
    family: str = Field(description="what rules group by")
    letter: str = Field(description="in strings such as AFS.M")
    colour: str = Field(description="of the family, #RRGGBB, safe for colour-blind eyes")
    options: dict[str, Any] = Field(description="JSON schema of its options, with the ranges that they state")
    cache_known: bool = Field(description="whether the bytes that it keeps token by token are known before it is built")
    reach: Reach = Field(
        description="with default options in the default space; the JSON of an architecture has each candidate's own"
    )


class SyntheticTask(BaseModel):
    """A task whose examples are drawn on the fly; `task.dataset` names it."""

    name: str
    description: str
    objective: str = Field(description="what `task.objective` must be")
    causal: bool | None = Field(description="what `space.causal` must be; null: either")
    unrolled: bool = Field(description="whether `space.backbone.pooling` must be unroll")
    options: dict[str, Any] = Field(
        description="JSON schema of `task.dataset_options`, with the ranges that they state"
    )
    best_accuracy: float = Field(description="highest there is, for default options")
    best_why: str = Field(description="what makes it so, as one clause")
    source: str


class TokenizerType(BaseModel):
    """One way to make token ids of text; `task.tokenizer.type` names it."""

    type: str
    description: str


class Catalog(BaseModel):
    """Everything that a form for a request needs."""

    blocks: list[Block]
    families: list[str] = Field(description="of all blocks, those of installed packages last")
    objectives: list[str]
    tasks: list[SyntheticTask]
    tokenizers: list[TokenizerType]
    presets: dict[str, dict[str, Any]] = Field(description="complete requests by name")
    preset_descriptions: dict[str, str] = Field(description="one line for each preset")
    request_schema: dict[str, Any] = Field(description="JSON schema of a request")
    max_dataset_bytes: int = Field(description="longest file that may be uploaded, and longest content of one")
    min_dataset_bytes: int = Field(description="shortest text that any request could use")
