// SPDX-License-Identifier: Apache-2.0
// The codec's rules, one by one.
#include "drk/base/json.h"

#include "base/error_matchers.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

namespace drk::json {
namespace {

enum class Colour : std::uint8_t { red, green };
BOOST_DESCRIBE_ENUM(Colour, red, green)

struct Inner {
  std::string name = "unnamed";
  std::vector<std::int32_t> numbers;
};
BOOST_DESCRIBE_STRUCT(Inner, (), (name, numbers))

struct Circle {
  static constexpr const char* kKind = "circle";
  double radius = 1;
};
BOOST_DESCRIBE_STRUCT(Circle, (), (radius))

struct Point {
  static constexpr const char* kKind = "point";
};
BOOST_DESCRIBE_STRUCT(Point, (), ())

struct Outer {
  bool flag = true;
  std::uint64_t big = 0;
  std::uint8_t tiny = 0;
  double real = 0;
  Colour colour = Colour::red;
  std::optional<Inner> inner;
  std::map<std::string, std::int32_t> counts;
  std::variant<Circle, Point> shape;
};
BOOST_DESCRIBE_STRUCT(Outer, (), (flag, big, tiny, real, colour, inner, counts, shape))

Outer read(std::string_view text) {
  return from_json<Outer>(parse(text), "outer");
}

TEST(ToJson, WritesEveryMemberInOrder) {
  Outer outer;
  outer.big = 18446744073709551615U;
  outer.real = 0.1;
  outer.colour = Colour::green;
  outer.inner = Inner{"x", {1, -2}};
  outer.counts = {{"a", 1}};
  outer.shape = Point{};
  EXPECT_EQ(dump(to_json(outer)),
            R"({"flag":true,"big":18446744073709551615,"tiny":0,"real":0.1,"colour":"green",)"
            R"("inner":{"name":"x","numbers":[1,-2]},"counts":{"a":1},"shape":{"kind":"point"}})");
}

TEST(ToJson, LeavesAbsentOptionalsOut) {
  EXPECT_EQ(to_json(Outer{}).get_object().if_contains("inner"), nullptr);
}

TEST(FromJson, KeepsDefaultsOfAbsentMembers) {
  const Outer outer = read(R"({"inner": {}})");
  EXPECT_TRUE(outer.flag);
  EXPECT_EQ(outer.inner->name, "unnamed");
  EXPECT_EQ(std::get<Circle>(outer.shape).radius, 1);
}

TEST(FromJson, ReadsNullAsAbsent) {
  EXPECT_FALSE(read(R"({"inner": null})").inner.has_value());
}

TEST(FromJson, NamesThePathOfWhatIsWrong) {
  const struct {
    const char* text;
    const char* error;
  } cases[] = {
      {R"([])", "outer: expected an object, got a list"},
      {R"({"flag": 1})", "outer.flag: expected true or false, got 1"},
      {R"({"big": -1})", "outer.big: expected an integer of at least 0, got -1"},
      {R"({"big": 1.5})", "outer.big: expected an integer of at least 0, got 1.5"},
      {R"({"tiny": 256})", "outer.tiny: expected a smaller integer, got 256"},
      {R"({"real": "much"})", "outer.real: expected a number, got the text \"much\""},
      {R"({"real": null})", "outer.real: expected a number, got null"},
      {R"({"colour": "blue"})", "outer.colour: \"blue\" is not one of red, green"},
      {R"({"colour": 1})", "outer.colour: expected a text, got 1"},
      {R"({"inner": {"numbers": [1, "two"]}})",
       "outer.inner.numbers[1]: expected an integer, got the text \"two\""},
      {R"({"inner": {"nmae": "x"}})", "outer.inner: unknown member \"nmae\""},
      {R"({"counts": {"a": []}})", "outer.counts.a: expected an integer, got a list"},
      {R"({"shape": {"radius": 1}})", "outer.shape: expected an object with a text \"kind\""},
      {R"({"shape": {"kind": "square"}})",
       "outer.shape.kind: \"square\" is not one of circle, point"},
      {R"({"shape": {"kind": "point", "radius": 1}})", "outer.shape: unknown member \"radius\""},
      {R"({"kind": "circle"})", "outer: unknown member \"kind\""},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, c.error, [&] {
      static_cast<void>(read(c.text));
    })) << c.text;
  }
}

TEST(FromJson, CarriesNumbersThatJsonLacks) {
  Outer outer;
  for (const double number : {std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity(),
                              -0.0,
                              5e-324,
                              1.7976931348623157e308}) {
    outer.real = number;
    const double read_back = read(dump(to_json(outer))).real;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(read_back), std::bit_cast<std::uint64_t>(number));
  }
  outer.real = std::nan("");
  EXPECT_TRUE(std::isnan(read(dump(to_json(outer))).real));
}

// Boost 1.81's own parser returns the neighbour of one double in ten.
TEST(Parse, ReadsBackEveryDoubleExactly) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const double number = std::bit_cast<double>(random());
    if (!std::isfinite(number)) continue;
    ASSERT_EQ(parse(dump(to_json(number))).to_number<double>(), number);
  }
}

TEST(Parse, SaysWhereATextStopsBeingJson) {
  const struct {
    const char* text;
    const char* error;
  } cases[] = {
      {"", "incomplete JSON at byte 0 of 0"},
      {"[1", "incomplete JSON at byte 2 of 2"},
      {"[1,]", "syntax error at byte 3 of 4"},
      {"{} {}", "text after the value at byte 3 of 5"},
      {"\"\xFF\"", "syntax error at byte 1 of 3"},
      {"nan", "syntax error at byte 1 of 3"},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, c.error, [&] {
      static_cast<void>(parse(c.text));
    })) << c.text;
  }
}

TEST(Parse, RefusesEndlessNesting) {
  EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, "too deep", [] {
    static_cast<void>(parse(std::string(100'000, '[')));
  }));
}

TEST(Dump, ReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(dump(to_json(std::string("a\xFF"))), "\"a\xEF\xBF\xBD\"");
}

TEST(DumpPretty, KeepsFlatListsOnOneLine) {
  EXPECT_EQ(dump_pretty(parse(R"({"a":{"b":[1,2]},"c":[{"d":null}],"e":{}})")),
            "{\n"
            "  \"a\": {\n"
            "    \"b\": [1,2]\n"
            "  },\n"
            "  \"c\": [\n"
            "    {\n"
            "      \"d\": null\n"
            "    }\n"
            "  ],\n"
            "  \"e\": {}\n"
            "}\n");
}

TEST(EnumFrom, KnowsOnlyItsEnumerators) {
  EXPECT_EQ(enum_from<Colour>("green"), Colour::green);
  EXPECT_EQ(enum_from<Colour>("Green"), std::nullopt);
  EXPECT_STREQ(name_of(Colour::red), "red");
}

}  // namespace
}  // namespace drk::json
