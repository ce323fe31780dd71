// SPDX-License-Identifier: Apache-2.0
// Targets, escapes, URLs.
#include "drk/base/error.h"

#include "base/error_matchers.h"
#include "http/target.h"
#include "http/url.h"

#include <gtest/gtest.h>

#include <string>

namespace drk::http {
namespace {

TEST(PercentEncode, KeepsOnlyWhatNeedsNoEscape) {
  EXPECT_EQ(percent_encode("a b/c"), "a%20b%2Fc");
  EXPECT_EQ(percent_encode("AZaz09-._~"), "AZaz09-._~");
  EXPECT_EQ(percent_encode("\u20ac+%&="), "%E2%82%AC%2B%25%26%3D");
  EXPECT_EQ(percent_encode(std::string("\0\xff", 2)), "%00%FF");
  EXPECT_EQ(percent_encode(""), "");
}

TEST(PercentEncode, IsUndoneByTheServer) {
  std::string all;
  for (int c = 1; c < 128; ++c) all.push_back(static_cast<char>(c));
  const std::string encoded = percent_encode(all);
  const Target target = parse_target("/" + encoded + "?" + encoded + "=" + encoded);
  EXPECT_EQ(target.path, "/" + all);
  EXPECT_EQ(target.query, (Fields{{all, all}}));
}

TEST(ParseTarget, TakesTheFormsThatServersMustTake) {
  struct Case {
    const char* text = nullptr;
    const char* path = nullptr;
    Fields query;
  };
  for (const auto& [text, path, query] : {
           Case{"/", "/", {}},
           Case{"/a/b", "/a/b", {}},
           Case{"/a+b?a+b", "/a+b", {{"a b", ""}}},
           Case{"/?", "/", {}},
           Case{"/?a=1&b=&=c&d=e=f&&", "/", {{"a", "1"}, {"b", ""}, {"", "c"}, {"d", "e=f"}}},
           Case{"http://host", "/", {}},
           Case{"http://host:1/a?b=c", "/a", {{"b", "c"}}},
           Case{"http://host?b=c", "/", {{"b", "c"}}},
           Case{"/http://x", "/http://x", {}},
           Case{"*", "*", {}},
       }) {
    const Target target = parse_target(text);
    EXPECT_EQ(target.path, path) << text;
    EXPECT_EQ(target.query, query) << text;
  }
}

TEST(ParseTarget, RefusesOthers) {
  for (const char* text :
       {"", "a", "host:80", "/%", "/%1", "/%1g", "/%00", "/%ff", "/?%", "/?=%80"}) {
    EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, "request target", [&] {
      (void)parse_target(text);
    })) << text;
  }
}

TEST(ParseOrigin, ReadsUrls) {
  struct Case {
    const char* url = nullptr;
    Origin origin;
  };
  for (const auto& [url, origin] : {
           Case{"http://127.0.0.1:10907", {false, "127.0.0.1", "10907", "127.0.0.1:10907"}},
           Case{"HTTP://some-host.example/",
                {false, "some-host.example", "80", "some-host.example:80"}},
           Case{"https://[::1]", {true, "::1", "443", "[::1]:443"}},
           Case{"https://[fe80::1]:8443/", {true, "fe80::1", "8443", "[fe80::1]:8443"}},
       }) {
    const Origin got = parse_origin(url);
    EXPECT_EQ(got.is_tls, origin.is_tls) << url;
    EXPECT_EQ(got.host, origin.host) << url;
    EXPECT_EQ(got.port, origin.port) << url;
    EXPECT_EQ(got.host_header, origin.host_header) << url;
  }
}

TEST(ParseOrigin, RefusesWhatIsNotOne) {
  for (const char* url : {"",
                          "host:80",
                          "ftp://host",
                          "http://",
                          "http://:80",
                          "http://host:",
                          "http://host:0",
                          "http://host:65536",
                          "http://host:80x",
                          "http://host/path",
                          "http://host?query",
                          "http://user@host",
                          "http://ho st",
                          "http://[::1",
                          "http://[]:80",
                          "http://::1",
                          "http://[::1]80",
                          "http://host\r\nX-Forged: 1"}) {
    EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, "URL", [&] { (void)parse_origin(url); }))
        << url;
  }
}

}  // namespace
}  // namespace drk::http
