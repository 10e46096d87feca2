// SPDX-License-Identifier: Apache-2.0
// `rdmasim view`: what is in the page, what is refused, and what the server gives away.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <zlib.h>

#include <chrono>
#include <csignal>
#include <string_view>
#include <thread>

#include "cli/options.h"
#include "cli/trace_page.h"
#include "cli_fixture.h"

namespace {

using testing::AllOf;
using testing::HasSubstr;

// A page like that of the viewer; what the real one shows is tested where it is made.
const std::string kHead = "<!doctype html><html><body><div id=\"app\"></div>",
                  kTail = "<script>show()</script></body></html>\n";
const std::string kNative = R"({"format":"rdmasim-cols/1","time":"ps"})"
                            "\n";
const std::string kChrome = R"({"displayTimeUnit":"ns","otherData":{"format":"rdmasim-chrome/1"},"traceEvents":[)"
                            "\n";

std::string base64_decoded(std::string_view text) {
  const std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  EXPECT_EQ(text.size() % 4, 0u);
  std::string out;
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const char c : text.substr(0, text.find('='))) {
    const std::size_t digit = digits.find(c);
    EXPECT_NE(digit, std::string_view::npos) << c;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    held += 6;
    if (held >= 8) out += static_cast<char>(bits >> (held -= 8) & 0xFF);
  }
  return out;
}

class View : public Cli {
 protected:
  View() : page_(write("page.html", kHead + "<!--rdmasim:trace-->" + kTail)) {}

  std::string unpacked(const std::string& gzip) {
    const fs::path p = write("packed.gz", gzip);
    gzFile f = gzopen(p.c_str(), "rb");
    EXPECT_EQ(gzdirect(f), 0) << "not gzip";
    std::string out, piece(1 << 16, '\0');
    for (int n; (n = gzread(f, piece.data(), static_cast<unsigned>(piece.size()))) > 0;)
      out.append(piece, 0, static_cast<std::size_t>(n));
    EXPECT_EQ(gzclose(f), Z_OK);
    return out;
  }
  fs::path write_packed(const std::string& name, const std::string& text) {
    gzFile f = gzopen((dir_ / name).c_str(), "wb");
    gzwrite(f, text.data(), static_cast<unsigned>(text.size()));
    gzclose(f);
    return dir_ / name;
  }
  struct Element {
    std::string id, name, text;
  };
  // The elements between the two halves of the page.
  std::vector<Element> elements(const fs::path& file) {
    std::string all = slurp(file);
    EXPECT_TRUE(all.starts_with(kHead) && all.ends_with(kTail));
    std::string_view rest(all);
    rest = rest.substr(kHead.size(), rest.size() - kHead.size() - kTail.size());
    const auto take = [&](std::string_view before, std::string_view until) {
      EXPECT_TRUE(rest.starts_with(before)) << rest.substr(0, 80);
      rest.remove_prefix(before.size());
      const std::size_t end = rest.find(until);
      std::string out(rest.substr(0, end));
      rest.remove_prefix(end + until.size());
      return out;
    };
    std::vector<Element> out;
    while (!rest.empty()) {
      const std::string id = take(R"(<script type="application/octet-stream;base64" id=")", "\"");
      const std::string name = take(" data-name=\"", "\"");
      out.push_back({id, name, base64_decoded(take(">", "</script>"))});
    }
    return out;
  }
  Finished view(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "view");
    arguments.insert(arguments.end(), {"--page", page_});
    return rdmasim(arguments);
  }
  fs::path page_;
};

TEST_F(View, ThePageHoldsTheTraceOfARun) {
  const fs::path out = dir_ / "out";
  ASSERT_EQ(run({"--quiet", "--trace", "json,perfetto", "--out", out}).code, 0);
  const Finished f = view({out});
  ASSERT_EQ(f.code, 0) << f.err;
  EXPECT_THAT(f.out, AllOf(HasSubstr("wrote " + (out / "trace.html").string() + ", "), HasSubstr(" kB\n")));
  const auto e = elements(out / "trace.html");
  ASSERT_EQ(e.size(), 1u);
  EXPECT_EQ(e[0].id, "rdmasim-trace");
  EXPECT_EQ(e[0].name, "out/trace.jsonl");
  EXPECT_TRUE(unpacked(e[0].text) == slurp(out / "trace.jsonl"));
  const std::string first = slurp(out / "trace.html");
  EXPECT_EQ(view({out / "trace.jsonl"}).code, 0);
  EXPECT_TRUE(slurp(out / "trace.html") == first) << "the same trace gives the same bytes";
}

TEST_F(View, TwoTracesComeSideBySideAndPackedOnesStayAsTheyAre) {
  fs::create_directories(dir_ / "a");
  const std::string text = kChrome + "\n],\"metadata\":{}}\n";
  const fs::path packed = write_packed("a/trace.perfetto.json.gz", text), other = write("o\"<&.jsonl", kNative);
  const Finished f = view({dir_ / "a", other, "--out", dir_ / "both.html"});
  ASSERT_EQ(f.code, 0) << f.err;
  const auto e = elements(dir_ / "both.html");
  ASSERT_EQ(e.size(), 2u);
  EXPECT_EQ(e[0].id, "rdmasim-trace");
  EXPECT_EQ(e[0].name, "a/trace.perfetto.json.gz");
  EXPECT_EQ(e[0].text, slurp(packed));
  EXPECT_EQ(e[1].id, "rdmasim-trace-b");
  EXPECT_EQ(e[1].name, dir_.filename().string() + "/o&quot;&lt;&amp;.jsonl");
  EXPECT_EQ(unpacked(e[1].text), kNative);
}

TEST_F(View, OfADirectoryTheNativeTraceComesFirstAndTheNewerOfTwo) {
  fs::create_directories(dir_ / "a");
  write("a/trace.perfetto.json", kChrome);
  const fs::path plain = write("a/trace.jsonl", kNative), packed = write_packed("a/trace.jsonl.gz", kNative);
  const auto chosen = [&] { return cli::find_trace(dir_ / "a").path.filename(); };
  fs::last_write_time(packed, fs::last_write_time(plain) - std::chrono::seconds(5));
  EXPECT_EQ(chosen(), "trace.jsonl");
  fs::last_write_time(packed, fs::last_write_time(plain) + std::chrono::seconds(5));
  EXPECT_EQ(chosen(), "trace.jsonl.gz");
  fs::remove(plain), fs::remove(packed);
  EXPECT_EQ(chosen(), "trace.perfetto.json");
}

TEST_F(View, MistakesExitTwoAndLeaveNoPage) {
  const auto mistake = [&](const std::vector<std::string>& arguments) {
    const Finished f = view(arguments);
    EXPECT_EQ(f.code, 2);
    EXPECT_EQ(f.out, "");
    EXPECT_FALSE(fs::exists(dir_ / "trace.html"));
    return f.err;
  };
  const fs::path good = write("good.jsonl", kNative);
  fs::create_directories(dir_ / "empty");
  EXPECT_THAT(mistake({}), HasSubstr("missing DIR|FILE"));
  EXPECT_THAT(mistake({good, good, good}), HasSubstr("unexpected argument"));
  EXPECT_THAT(mistake({dir_ / "none"}), HasSubstr("none: there is no such file or directory"));
  EXPECT_THAT(mistake({dir_ / "empty"}),
              HasSubstr("(looked for trace.jsonl, trace.jsonl.gz, trace.perfetto.json, trace.perfetto.json.gz)"));
  EXPECT_THAT(mistake({write("a", "")}), HasSubstr("a: is no trace that the viewer shows: it is empty"));
  EXPECT_THAT(mistake({write("a", "{\"traceEvents\":[]}")}), HasSubstr("it begins with \"{\"traceEvents\":[]}\""));
  EXPECT_THAT(mistake({write("a", "{\"format\":\"rdmasim-cols/2\"}")}), HasSubstr("is no trace"));
  EXPECT_THAT(mistake({write("a", "\x1f\x8b\x08")}), HasSubstr("is damaged: nothing of it can be unpacked"));
  EXPECT_THAT(mistake({"/dev/null"}), HasSubstr("/dev/null: is not a file"));
  EXPECT_THAT(mistake({good, "--out", dir_ / "empty"}), HasSubstr("empty: is a directory"));
  EXPECT_THAT(mistake({good, "--out", "/dev/full"}), HasSubstr("/dev/full: is not a file"));
  EXPECT_THAT(mistake({good, "--out", good}), HasSubstr("is the trace itself"));
  EXPECT_THAT(mistake({good, "--out", dir_ / "no" / "a.html"}), HasSubstr("cannot create"));
  EXPECT_THAT(mistake({good, "--serve=70000"}), HasSubstr("expected a port from 0"));
  page_ = dir_ / "no.html";
  EXPECT_THAT(mistake({good}), HasSubstr("no.html: cannot be read: No such file"));
  page_ = write("twice.html", "<!--rdmasim:trace--><!--rdmasim:trace-->");
  EXPECT_THAT(mistake({good}), HasSubstr("is not the page of the viewer"));
}

TEST_F(View, APackedTraceThatIsCutShortIsShownWithAWarning) {
  std::string text = kNative;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i * 7919) + "\n";
  const fs::path p = write_packed("cut.jsonl.gz", text);
  fs::resize_file(p, fs::file_size(p) / 2);
  const Finished f = view({p});
  EXPECT_EQ(f.code, 0);
  EXPECT_THAT(f.err, testing::ContainsRegex("cut.jsonl.gz is damaged or cut short after [1-9][0-9]* unpacked bytes"));
}

TEST_F(View, ATraceTooLargeForOneTextIsRefusedWithAdvice) {
  const cli::TraceFile t = cli::find_trace(write("a.jsonl", kNative));
  const fs::path out = dir_ / "page";
  try {
    cli::write_trace_page(page_, {t}, out, 40);
    FAIL() << "not refused";
  } catch (const cli::UsageError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("a.jsonl: is too large for a page"), HasSubstr("--trace-last")));
  }
  EXPECT_FALSE(fs::exists(out) || fs::exists(out.string() + ".part"));
  const std::size_t needed = 4 * ((elements((cli::write_trace_page(page_, {t}, out), out))[0].text.size() + 2) / 3);
  cli::write_trace_page(page_, {t}, out, needed);
  EXPECT_THROW(cli::write_trace_page(page_, {t}, out, needed - 1), cli::UsageError);
}

class Served : public View {
 protected:
  // Starts the server on a free port and reads which.
  void start() {
    const fs::path trace = write("secret.jsonl", kNative);
    pid_ = spawn({"view", trace, "--page", page_, "--serve"});
    const std::string before = "http://127.0.0.1:";
    for (int tries = 0; port_ == 0 && tries < 1000; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const std::string text = slurp(dir_ / "stdout");
      const std::size_t at = text.find(before);
      if (at != std::string::npos && text.back() == '\n') port_ = std::stoi(text.substr(at + before.size()));
    }
    ASSERT_NE(port_, 0);
  }
  int connect_to(const char* address) {
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(static_cast<std::uint16_t>(port_));
    inet_pton(AF_INET, address, &a.sin_addr);
    if (connect(s, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0) return s;
    close(s);
    return -1;
  }
  std::string answer(const std::string& request) {
    const int s = connect_to("127.0.0.1");
    EXPECT_GE(s, 0);
    EXPECT_EQ(::write(s, request.data(), request.size()), static_cast<ssize_t>(request.size()));
    std::string out, piece(1 << 16, '\0');
    for (ssize_t n; (n = ::read(s, piece.data(), piece.size())) > 0;) out.append(piece, 0, static_cast<std::size_t>(n));
    close(s);
    return out;
  }
  std::string ask(const std::string& method, const std::string& target) {
    return answer(method + " " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  }
  Finished stop(int signal) {
    kill(pid_, signal);
    return wait(pid_);
  }
  pid_t pid_ = -1;
  int port_ = 0;
};

TEST_F(Served, ThePageAndNothingElse) {
  start();
  const std::string page = slurp(dir_ / "trace.html"), got = ask("GET", "/");
  const std::size_t body = got.find("\r\n\r\n") + 4;
  EXPECT_TRUE(got.starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(got.substr(body) == page);
  const std::string head = ask("HEAD", "/");
  EXPECT_THAT(head, AllOf(HasSubstr("200 OK"), HasSubstr("Content-Length: " + std::to_string(page.size()) + "\r\n")));
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << "no body";
  for (const char* target :
       {"/secret.jsonl", "/../secret.jsonl", "//", "/trace.html", "/%2e%2e/", "/?x", "*", "/etc/passwd"})
    EXPECT_TRUE(ask("GET", target).starts_with("HTTP/1.1 404 Not Found\r\n")) << target;
  EXPECT_TRUE(ask("HEAD", "/no").starts_with("HTTP/1.1 404 Not Found\r\n"));
  for (const char* method : {"PUT", "DELETE", "OPTIONS", "TRACE"})
    EXPECT_THAT(ask(method, "/"), AllOf(HasSubstr("405 Method Not Allowed"), HasSubstr("Allow: GET, HEAD\r\n")));
  EXPECT_EQ(answer("nonsense\r\n\r\n"), "");
  EXPECT_EQ(connect_to("127.0.0.2"), -1) << "listens on one address only";
  const Finished f = stop(SIGINT);
  EXPECT_EQ(f.code, 0);
  EXPECT_EQ(f.err, "");
}

TEST_F(Served, ConnectionsThatSayNothingHinderNobody) {
  start();
  const int idle = connect_to("127.0.0.1");
  EXPECT_GE(idle, 0);
  EXPECT_TRUE(ask("GET", "/").starts_with("HTTP/1.1 200 OK\r\n"));
  const Finished second = rdmasim({"view", dir_ / "secret.jsonl", "--page", page_, "--out", dir_ / "again.html",
                                   "--serve=" + std::to_string(port_)});
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.err, HasSubstr("cannot listen on 127.0.0.1:" + std::to_string(port_)));
  EXPECT_EQ(stop(SIGTERM).code, 0);
  close(idle);
}

}  // namespace
