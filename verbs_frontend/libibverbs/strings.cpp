// SPDX-License-Identifier: Apache-2.0
// Texts for the enumerations of verbs.h, as the library's *_str functions return them.
#include <infiniband/verbs.h>

#include <array>
#include <cstddef>

namespace {

template <std::size_t N>
const char* pick(const std::array<const char*, N>& names, int i) {
  return i >= 0 && static_cast<std::size_t>(i) < N ? names[static_cast<std::size_t>(i)] : "unknown";
}

constexpr std::array<const char*, 24> kWcStatus{"success",
                                                "local length error",
                                                "local QP operation error",
                                                "local EE context operation error",
                                                "local protection error",
                                                "Work Request Flushed Error",
                                                "memory management operation error",
                                                "bad response error",
                                                "local access error",
                                                "remote invalid request error",
                                                "remote access error",
                                                "remote operation error",
                                                "transport retry counter exceeded",
                                                "RNR retry counter exceeded",
                                                "local RDD violation error",
                                                "remote invalid RD request",
                                                "aborted error",
                                                "invalid EE context number",
                                                "invalid EE context state",
                                                "fatal error",
                                                "response timeout error",
                                                "general error",
                                                "TM error",
                                                "TM software rendezvous"};

constexpr std::array<const char*, 20> kEvent{"CQ error",
                                             "local work queue catastrophic error",
                                             "invalid request local work queue error",
                                             "local access violation work queue error",
                                             "communication established",
                                             "send queue drained",
                                             "path migrated",
                                             "path migration request error",
                                             "local catastrophic error",
                                             "port active",
                                             "port error",
                                             "LID change",
                                             "P_Key change",
                                             "SM change",
                                             "SRQ catastrophic error",
                                             "SRQ limit reached",
                                             "last WQE reached",
                                             "client reregistration",
                                             "GID table change",
                                             "WQ fatal"};

constexpr std::array<const char*, 9> kNodeType{"unknown",
                                               "InfiniBand channel adapter",
                                               "InfiniBand switch",
                                               "InfiniBand router",
                                               "iWARP NIC",
                                               "usNIC",
                                               "usNIC UDP",
                                               "unspecified",
                                               "unknown"};

constexpr std::array<const char*, 6> kPortState{"no state change (NOP)", "down", "init", "armed", "active",
                                                "active defer"};

}  // namespace

extern "C" {

const char* ibv_wc_status_str(enum ibv_wc_status status) { return pick(kWcStatus, static_cast<int>(status)); }
const char* ibv_event_type_str(enum ibv_event_type event) { return pick(kEvent, static_cast<int>(event)); }
const char* ibv_node_type_str(enum ibv_node_type node_type) { return pick(kNodeType, static_cast<int>(node_type)); }
const char* ibv_port_state_str(enum ibv_port_state port_state) {
  return pick(kPortState, static_cast<int>(port_state));
}

}  // extern "C"
