// SPDX-License-Identifier: Apache-2.0
// The pcapng sink, read by tshark and capinfos.
#include <gmock/gmock.h>

#include <array>
#include <cstdio>

#include "made_up_run.h"
#include "sim/trace/pcapng_sink.h"

namespace sim::trace {
namespace {

using testing::ElementsAre;

// RC SEND Only of 64 bytes and an acknowledgement, with their ICRCs.
constexpr std::string_view kSend =
    "0200000000020200000000010800456a006c00004000401126150a0000010a000002c00112b70058000004c0ffff0000002280000064000102"
    "030405"
    "060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e"
    "3fa0f4"
    "9923";
constexpr std::string_view kAck =
    "0200000000010200000000020800456a003000004000401126510a0000020a000001c00212b7001c00001140ffff00000011000000641f0000"
    "01b1a8"
    "64eb";

std::vector<std::byte> bytes_of(std::string_view hex) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    out.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return out;
}

std::vector<std::string> output_of(const std::string& command) {
  std::vector<std::string> lines;
  FILE* const pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  std::array<char, 4096> line;
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    lines.emplace_back(line.data());
    if (lines.back().ends_with('\n')) lines.back().pop_back();
  }
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return lines;
}

struct Pcapng : TraceSinks {
  fs::path file = dir / "t.pcapng";
  // A SEND that waits for the wire, an ACK of an earlier one that arrives meanwhile, and the arrival of the SEND.
  void record(std::uint32_t snaplen) {
    Context context;
    context.tracer.add_sink(make_pcapng_sink(file, snaplen));
    Source out(context, -1, "fabric.a_to_b"), in(context, -1, "fabric.a_to_b.rx"), ack(context, -1, "fabric.b_to_a.rx");
    context.tracer.open(info());
    const auto send = bytes_of(kSend), answer = bytes_of(kAck);
    out.packet(kFrame, 42, 5'000'600_ps, 1'000'000_ps, true, 7, send);
    ack.packet(kFrame, 0, 3'000'000_ps, 3'000'000_ps, false, 3, answer);
    in.packet(kFrame, 42, 9'123'456_ps, 9'123'456_ps, false, 7, send);
    context.tracer.close(10'000'000_ps);
  }
  std::vector<std::string> fields(const std::string& names) {
    std::string command = "tshark -r " + file.string() + " -T fields -E separator='|'";
    std::istringstream in(names);
    for (std::string name; in >> name;) command += " -e " + name;
    return output_of(command);
  }
};

TEST_F(Pcapng, FramesLeaveInTheOrderOfTheirTimes) {
  record(0);
  EXPECT_THAT(
      fields("frame.time_epoch frame.interface_name frame.packet_flags_direction frame.packet_id frame.comment"),
      ElementsAre("0.000003000|fabric.b_to_a.rx|0x00000001|3|", "0.000005001|fabric.a_to_b|0x00000002|7|msg=42",
                  "0.000009123|fabric.a_to_b.rx|0x00000001|7|msg=42"));
  EXPECT_THAT(output_of("capinfos -r -T -o " + file.string()), ElementsAre(testing::EndsWith("\tTrue")));
}

TEST_F(Pcapng, TsharkReadsTheHeaders) {
  record(0);
  EXPECT_THAT(fields("infiniband.bth.opcode infiniband.bth.psn infiniband.bth.destqp infiniband.aeth.msn "
                     "infiniband.invariant.crc frame.len"),
              ElementsAre("17|100|0x000011|1|0xb1a864eb|62", "4|100|0x000022||0xa0f49923|122",
                          "4|100|0x000022||0xa0f49923|122"));
  EXPECT_TRUE(output_of("tshark -r " + file.string() + " -Y _ws.malformed").empty());
}

TEST_F(Pcapng, LongFramesAreCutAndTellTheirLength) {
  record(66);
  EXPECT_THAT(fields("frame.len frame.cap_len infiniband.bth.opcode"), ElementsAre("62|62|17", "122|66|4", "122|66|4"));
}

TEST_F(Pcapng, TellsScenarioAndVersion) {
  record(0);
  const auto lines = output_of("capinfos " + file.string());
  EXPECT_THAT(lines, testing::Contains(testing::HasSubstr("rdmasim 1.2.3")));
  EXPECT_THAT(lines, testing::Contains(testing::HasSubstr("seed 42")));
}

TEST_F(Pcapng, CompressedIsTheSameCapture) {
  record(0);
  const std::string plain = text(file);
  file = dir / "t.pcapng.gz";
  record(0);
  EXPECT_LT(fs::file_size(file), plain.size());
  ASSERT_EQ(std::system(("gzip -dkf " + file.string()).c_str()), 0);
  EXPECT_EQ(text(dir / "t.pcapng"), plain);
}

}  // namespace
}  // namespace sim::trace
