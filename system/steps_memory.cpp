// SPDX-License-Identifier: Apache-2.0
// Steps that store to memory, look at it, or wait for it or for another program.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "system/steps_program.h"

namespace sys {

using sim::Picos;

std::span<std::byte> StepsProgram::bytes_of(const MemoryStep& m) {
  const ibv_mr* mr = objects_.mr(m.mr);
  const std::uint64_t number = m.value.u64 ? 8 : m.value.u32 ? 4 : 0;
  const std::uint64_t length =
      number != 0 ? number : m.length.value_or(mr->length - std::min<std::uint64_t>(m.offset, mr->length));
  if (m.offset > mr->length || length > mr->length - m.offset)
    throw StepFailed{"bytes " + std::to_string(m.offset) + " to " + std::to_string(m.offset + length) +
                     " are not inside the MR of " + std::to_string(mr->length) + " bytes"};
  return {static_cast<std::byte*>(mr->addr) + m.offset, length};
}

namespace {

/// Byte i of what memory is to hold.
std::byte wanted(const MemoryValue& v, std::size_t i) {
  if (v.u64) return static_cast<std::byte>(*v.u64 >> 8 * i);
  if (v.u32) return static_cast<std::byte>(*v.u32 >> 8 * i);
  if (v.byte) return static_cast<std::byte>(*v.byte);
  return pattern_byte(i, *v.pattern);
}

}  // namespace

// Loads what the thread sees now, its own stores included; empty when that is as wanted.
std::string StepsProgram::difference(const MemoryStep& m) {
  cpu::Thread& thread = cpu::current();
  thread.sync();
  const std::span<std::byte> bytes = bytes_of(m);
  std::array<std::byte, 64> line;
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t in_line = line.size() - reinterpret_cast<std::uintptr_t>(&bytes[i]) % line.size();
    const std::size_t n = std::min(in_line, bytes.size() - i);
    thread.load(&bytes[i], line.data(), n);
    for (std::size_t k = 0; k < n; ++k, ++i)
      if (const std::byte w = wanted(m.value, i); line[k] != w)
        return "byte " + std::to_string(m.offset + i) + " of the MR is " +
               std::to_string(std::to_integer<int>(line[k])) + ", expected " + std::to_string(std::to_integer<int>(w));
  }
  return {};
}

void StepsProgram::store(const MemoryStep& m) {
  const std::span<std::byte> bytes = bytes_of(m);
  std::vector<std::byte> content(bytes.size());
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = wanted(m.value, i);
  if (!content.empty()) cpu::current().copy(bytes.data(), content.data(), content.size());
}

int StepsProgram::wait(const WaitStep& s) {
  cpu::Thread& thread = cpu::current();
  if (!s.label.empty()) return board_.wait_label(s.label.text, s.times, s.timeout) ? 0 : ETIMEDOUT;
  const std::span<std::byte> bytes = bytes_of(*s.memory);
  const Picos deadline = s.timeout.n == 0 ? sim::kNever : thread.now() + s.timeout;
  while (!difference(*s.memory).empty()) {
    if (thread.now() >= deadline) return ETIMEDOUT;
    if (s.timeout.n != 0) {
      thread.sleep(sim::max(s.interval, Picos{s.timeout.n / 10'000}));
      continue;
    }
    std::vector<cpu::Thread::Range> pages;
    for (std::size_t i = 0; i < bytes.size();) {
      const std::size_t n = std::min(
          memory::kPageSize - reinterpret_cast<std::uintptr_t>(&bytes[i]) % memory::kPageSize, bytes.size() - i);
      pages.push_back({&bytes[i], n});
      i += n;
    }
    thread.wait_for_write(pages, s.interval);
  }
  return 0;
}

}  // namespace sys
