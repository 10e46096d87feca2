// SPDX-License-Identifier: Apache-2.0
// Boost.Beast in one thread. A browser keeps spare connections open, so each is read without waiting for the others; idle ones are closed.
#include "cli/page_server.h"

#include <utility>  // Boost.Asio 1.74 forgets it

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>

#include "cli/options.h"

namespace cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds kIdle{60}, kSending{600};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, const std::filesystem::path& page) : stream_(std::move(socket)), page_(page) {}

  void read() {
    request_ = {};
    stream_.expires_after(kIdle);
    http::async_read(stream_, buffer_, request_, [self = shared_from_this()](error_code error, std::size_t) {
      if (!error) self->answer();
    });
  }

 private:
  void answer() {
    const bool head = request_.method() == http::verb::head;
    if (!head && request_.method() != http::verb::get) return refuse(http::status::method_not_allowed);
    if (request_.target() != "/") return refuse(http::status::not_found);
    http::file_body::value_type file;
    error_code error;
    file.open(page_.c_str(), beast::file_mode::scan, error);
    if (error) return refuse(http::status::not_found);
    const std::uint64_t size = file.size();
    if (head) {
      auto response = begin<http::empty_body>(http::status::ok, "text/html; charset=utf-8");
      response->content_length(size);
      return send(std::move(response));
    }
    auto response = begin<http::file_body>(http::status::ok, "text/html; charset=utf-8");
    response->body() = std::move(file);
    response->content_length(size);
    send(std::move(response));
  }
  void refuse(http::status status) {
    auto response = begin<http::string_body>(status, "text/plain");
    if (status == http::status::method_not_allowed) response->set(http::field::allow, "GET, HEAD");
    if (request_.method() != http::verb::head) response->body() = std::string(http::obsolete_reason(status)) + "\n";
    response->prepare_payload();
    send(std::move(response));
  }
  template <class Body>
  std::shared_ptr<http::response<Body>> begin(http::status status, const char* type) {
    auto response = std::make_shared<http::response<Body>>(status, request_.version());
    response->set(http::field::content_type, type);
    response->set(http::field::cache_control, "no-store");  // the next run makes another page
    response->keep_alive(request_.keep_alive());
    return response;
  }
  template <class Body>
  void send(std::shared_ptr<http::response<Body>> response) {
    stream_.expires_after(kSending);
    auto& message = *response;
    http::async_write(stream_, message,
                      [self = shared_from_this(), response = std::move(response)](error_code error, std::size_t) {
                        if (error) return;
                        if (response->need_eof()) self->stream_.socket().shutdown(tcp::socket::shutdown_send, error);
                        else self->read();
                      });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  const std::filesystem::path& page_;
};

void accept(tcp::acceptor& acceptor, const std::filesystem::path& page) {
  acceptor.async_accept([&](error_code error, tcp::socket socket) {
    if (!error) std::make_shared<Connection>(std::move(socket), page)->read();
    if (acceptor.is_open()) accept(acceptor, page);
  });
}

}  // namespace

void serve_page(const std::filesystem::path& page, std::uint16_t port) {
  asio::io_context io(1);
  asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&](error_code, int) { io.stop(); });
  tcp::acceptor acceptor(io);
  try {
    const tcp::endpoint here(asio::ip::address_v4::loopback(), port);
    acceptor.open(here.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(here);
    acceptor.listen();
  } catch (const boost::system::system_error& e) {
    throw UsageError("--serve: cannot listen on 127.0.0.1:" + std::to_string(port) + ": " + e.code().message());
  }
  std::cout << "http://127.0.0.1:" << acceptor.local_endpoint().port() << "/ shows it, until Ctrl-C" << std::endl;
  accept(acceptor, page);
  io.run();
}

}  // namespace cli
