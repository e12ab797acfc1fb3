"""The walk over a message: items, maps, nested messages, required fields and oneofs.

No served message has rules on items or maps, so these come from a file made here.
"""

from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldOptions, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.text_format import Parse

from maserve.apiserver.validation import check, message_problems
from maserve.base.errors import Invalid, Problem
from maserve.testing.resources import a_model, a_project
from maserve.wire import api, find_message

_FILE = """
name: "rules.proto" package: "michelangelo.api.rules" syntax: "proto3"
message_type {
  name: "Leaf"
  field { name: "word" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
}
message_type {
  name: "Tree"
  field { name: "words" number: 1 type: TYPE_STRING label: LABEL_REPEATED }
  field {
    name: "sizes" number: 2 type: TYPE_MESSAGE label: LABEL_REPEATED
    type_name: ".michelangelo.api.rules.Tree.SizesEntry"
  }
  field {
    name: "leaves" number: 3 type: TYPE_MESSAGE label: LABEL_REPEATED
    type_name: ".michelangelo.api.rules.Leaf"
  }
  field {
    name: "by_name" number: 4 type: TYPE_MESSAGE label: LABEL_REPEATED
    type_name: ".michelangelo.api.rules.Tree.ByNameEntry"
  }
  nested_type {
    name: "SizesEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL }
  }
  nested_type {
    name: "ByNameEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field {
      name: "value" number: 2 type: TYPE_MESSAGE label: LABEL_OPTIONAL
      type_name: ".michelangelo.api.rules.Leaf"
    }
  }
}
"""


def options_of(*rules: api.Validation) -> FieldOptions:
    """Return the rules as options of the pool that descriptors are made of."""
    ours: Any = find_message("google.protobuf.FieldOptions")()
    ours.Extensions[api.validation].extend(rules)
    return FieldOptions.FromString(ours.SerializeToString())


@pytest.fixture(scope="module")
def tree_type() -> Any:
    file = Parse(_FILE, FileDescriptorProto())
    leaf, tree = file.message_type
    leaf.field[0].options.CopyFrom(options_of(api.Validation(required=True, msg="is missing")))
    words, sizes, leaves, _ = tree.field
    words.options.CopyFrom(
        options_of(
            api.Validation(max_items="3"),
            api.Validation(items=api.Validation(pattern="[a-z]+")),
        )
    )
    sizes.options.CopyFrom(
        options_of(
            api.Validation(keys=api.Validation(max_length="3"), values=api.Validation(min="1"))
        )
    )
    leaves.options.CopyFrom(options_of(api.Validation(min_items="1")))
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("michelangelo.api.rules.Tree"))


def problems(message: Any) -> list[str]:
    return [str(problem) for problem in message_problems(message, "spec")]


def test_a_message_that_keeps_all_rules_has_no_problems(tree_type: Any) -> None:
    good = tree_type(
        words=["a"], sizes={"a": 1}, leaves=[{"word": "x"}], by_name={"n": {"word": "x"}}
    )
    assert problems(good) == []


def test_every_broken_item_is_named_by_its_place(tree_type: Any) -> None:
    bad = tree_type(
        words=["a", "B", "C"],
        sizes={"long": 1, "b": 0},
        leaves=[{}],
        by_name={"n": {}},
    )
    assert problems(bad) == [
        "spec.words[1] must match [a-z]+",
        "spec.words[2] must match [a-z]+",
        "spec.sizes[b] must be >= 1",
        "spec.sizes[long] must be at most 3 characters long",
        "spec.leaves[0].word is missing",
        "spec.by_name[n].word is missing",
    ]


def test_of_one_field_only_the_first_broken_rule_is_reported(tree_type: Any) -> None:
    bad = tree_type(words=["A", "B", "C", "D"], leaves=[{"word": "x"}])
    assert problems(bad) == ["spec.words must have at most 3 items"]


def test_too_few_items_are_reported(tree_type: Any) -> None:
    assert problems(tree_type()) == ["spec.leaves must have at least 1 items"]


def test_rules_of_a_build_come_last_and_nothing_is_said_twice() -> None:
    project = a_project("Bad")
    project.spec.tier = 0
    extra = Problem("spec", "is not ours")
    with pytest.raises(Invalid) as raised:
        check(project, [extra, extra])
    assert raised.value.problems[0] == Problem("spec.tier", "must be a non-zero number")
    assert raised.value.problems[-1] == extra
    assert len(raised.value.problems) == len(set(raised.value.problems))


def test_what_cannot_be_read_back_is_refused() -> None:
    model = a_model()
    score = model.spec.quality_scores.add()
    score.metadata.fields["x"].number_value = float("nan")
    with pytest.raises(Invalid):
        check(model)
