// SPDX-License-Identifier: Apache-2.0
// The schema of each kind of type.
#include "drk/base/json_schema.h"

#include <gtest/gtest.h>

#include <string_view>

namespace drk::json {
namespace {

enum class Colour : std::uint8_t { red, green };
BOOST_DESCRIBE_ENUM(Colour, red, green)

struct Base {
  std::string name;
};
BOOST_DESCRIBE_STRUCT(Base, (), (name))

struct Derived : Base {
  std::optional<bool> flag;
  std::vector<Colour> colours;
};
BOOST_DESCRIBE_STRUCT(Derived, (Base), (flag, colours))

struct Circle {
  static constexpr const char* kKind = "circle";
  std::uint16_t radius = 1;
};
BOOST_DESCRIBE_STRUCT(Circle, (), (radius))

struct Point {
  static constexpr const char* kKind = "point";
};
BOOST_DESCRIBE_STRUCT(Point, (), ())

struct Node {
  std::map<std::string, std::variant<Circle, Point>> shapes;
};
BOOST_DESCRIBE_STRUCT(Node, (), (shapes))

template <class T>
testing::AssertionResult has_schema(std::string_view text) {
  const Value schema = schema_of<T>();
  if (schema == parse(text)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << dump(schema);
}

TEST(SchemaOf, KnowsPlainTypes) {
  EXPECT_TRUE(has_schema<bool>(R"({"type": "boolean"})"));
  EXPECT_TRUE(has_schema<std::string>(R"({"type": "string"})"));
  EXPECT_TRUE(has_schema<Value>("{}"));
  EXPECT_TRUE(
      has_schema<double>(R"({"oneOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]})"));
  EXPECT_TRUE(has_schema<Colour>(R"({"type": "string", "enum": ["red", "green"]})"));
}

TEST(SchemaOf, GivesIntegersTheirEnds) {
  EXPECT_TRUE(has_schema<std::int8_t>(R"({"type": "integer", "minimum": -128, "maximum": 127})"));
  EXPECT_TRUE(
      has_schema<std::uint32_t>(R"({"type": "integer", "minimum": 0, "maximum": 4294967295})"));
  EXPECT_TRUE(has_schema<std::uint64_t>(R"({"type": "integer", "minimum": 0})"));
  EXPECT_TRUE(has_schema<std::int64_t>(R"({"type": "integer"})"));
}

TEST(SchemaOf, KnowsContainers) {
  EXPECT_TRUE(has_schema<std::vector<std::optional<bool>>>(
      R"({"type": "array", "items": {"type": "boolean"}})"));
  using Flags = std::map<std::string, bool>;
  EXPECT_TRUE(
      has_schema<Flags>(R"({"type": "object", "additionalProperties": {"type": "boolean"}})"));
}

TEST(SchemaOf, RequiresTheMembersThatAreNotOptional) {
  EXPECT_TRUE(has_schema<Derived>(R"({
      "type": "object",
      "properties": {
        "name": {"type": "string"},
        "flag": {"type": "boolean"},
        "colours": {"type": "array", "items": {"type": "string", "enum": ["red", "green"]}}},
      "required": ["name", "colours"],
      "additionalProperties": false})"));
}

TEST(SchemaOf, TellsAlternativesApartByKind) {
  EXPECT_TRUE(has_schema<Node>(R"({
      "type": "object",
      "properties": {
        "shapes": {
          "type": "object",
          "additionalProperties": {
            "oneOf": [
              {"type": "object",
               "properties": {
                 "kind": {"const": "circle"},
                 "radius": {"type": "integer", "minimum": 0, "maximum": 65535}},
               "required": ["kind", "radius"],
               "additionalProperties": false},
              {"type": "object",
               "properties": {"kind": {"const": "point"}},
               "required": ["kind"],
               "additionalProperties": false}]}}},
      "required": ["shapes"],
      "additionalProperties": false})"));
}

}  // namespace
}  // namespace drk::json
