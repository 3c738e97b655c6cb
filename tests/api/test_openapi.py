from __future__ import annotations

from typing import Any

import pytest

from api.examples import REQUEST
from nas.config.request import SearchRequest
from tests.api.running import Running


@pytest.fixture
def document(service: Running) -> dict[str, Any]:
    found: dict[str, Any] = service.http.get("/api/v1/openapi.json").json()
    return found


def test_every_operation_says_what_it_does_and_how_it_fails(document: dict[str, Any]) -> None:
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    assert len(operations) > 20
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    for operation in operations:
        assert operation["description"], operation["operationId"]
        content = operation["responses"]["default"]["content"]
        assert list(content) == ["application/problem+json"], operation["operationId"]


def test_the_example_of_a_request_is_valid(document: dict[str, Any]) -> None:
    body = document["paths"]["/api/v1/searches"]["post"]["requestBody"]["content"]["application/json"]
    assert body["example"] == REQUEST
    SearchRequest.model_validate(body["example"])


def test_no_field_of_an_answer_is_left_untyped(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name in ("Search", "Trial", "Report", "Probabilities", "Result", "Problem", "Artifact", "Catalog"):
        for field, schema in schemas[name]["properties"].items():
            assert schema.keys() & {"type", "anyOf", "$ref"}, (name, field)


def test_the_token_is_declared(document: dict[str, Any]) -> None:
    assert document["components"]["securitySchemes"]["token"] == {"type": "http", "scheme": "bearer"}
