// SPDX-License-Identifier: Apache-2.0
#include "cpu/process_memory.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "machine.h"

namespace cpu {
namespace {
using namespace test;

TEST(ProcessMemory, AllocatesInTheArenaOfTheCallingThread) {
  Machine m;
  m.program([&](Thread& t) {
    auto* p = static_cast<char*>(rdmasim_malloc(100));
    EXPECT_TRUE(t.space().owns(p));
    std::strcpy(p, "hello");
    p = static_cast<char*>(rdmasim_realloc(p, 10'000));
    EXPECT_STREQ(p, "hello");
    EXPECT_EQ(t.space().size_of(p), 10'000U);
    p = static_cast<char*>(rdmasim_realloc(p, 3));
    EXPECT_EQ(std::memcmp(p, "hel", 3), 0);
    rdmasim_free(p);
    EXPECT_EQ(t.space().size_of(p), 0U);
    rdmasim_free(nullptr);
    auto* q = static_cast<unsigned char*>(rdmasim_calloc(10, 10));
    EXPECT_EQ(q[99], 0);
    EXPECT_EQ(rdmasim_realloc(q, 0), nullptr);
  });
  m.run();
}

TEST(ProcessMemory, AlignsAndReportsErrorsAsTheCLibrary) {
  Machine m;
  m.program([&](Thread&) {
    void* p = nullptr;
    EXPECT_EQ(rdmasim_posix_memalign(&p, 4096, 100), 0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 4096, 0U);
    EXPECT_EQ(rdmasim_posix_memalign(&p, 3, 100), EINVAL);
    EXPECT_EQ(rdmasim_posix_memalign(&p, 4, 100), EINVAL);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(rdmasim_aligned_alloc(256, 10)) % 256, 0U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(rdmasim_memalign(8, 10)) % 8, 0U);
    errno = 0;
    EXPECT_EQ(rdmasim_calloc(SIZE_MAX, 2), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT_EQ(rdmasim_malloc(SIZE_MAX), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT_EQ(rdmasim_aligned_alloc(3, 8), nullptr);
    EXPECT_EQ(errno, EINVAL);
  });
  m.run();
}

TEST(ProcessMemory, PassesForeignPointersToTheCLibrary) {
  Machine m;
  m.program([&](Thread& t) {
    char* s = strdup("foreign");
    s = static_cast<char*>(rdmasim_realloc(s, 1000));
    EXPECT_STREQ(s, "foreign");
    EXPECT_FALSE(t.space().owns(s));
    rdmasim_free(s);
  });
  m.run();
}

}  // namespace
}  // namespace cpu
