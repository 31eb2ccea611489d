// SPDX-License-Identifier: MIT
// A web server that says what a test gives it, and notes what it was asked.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace dtool::trainer {

/// One connection an answer; the last one is given again and again. An empty answer is a connection
/// that closes without a word.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::vector<std::string> answers)
      : answers_(std::move(answers)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_, generic, size) != 0 || listen(listener_, 10) != 0 ||
        getsockname(listener_, generic, &size) != 0) {
      throw std::runtime_error("cannot listen");
    }
    place_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ~ScriptedServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::string url(const std::string& scheme = "http") const { return scheme + "://" + place_; }

  std::vector<std::string> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    for (std::size_t i = 0;; i = std::min(i + 1, answers_.size() - 1)) {
      const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) return;
      std::string request;
      char part[4096];
      while (request.find("\r\n\r\n") == request.npos) {
        const auto size = recv(client, part, sizeof part, 0);
        if (size <= 0) break;
        request.append(part, static_cast<std::size_t>(size));
        if (request[0] == 0x16) break;  // the first words of TLS
      }
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      std::string_view left = answers_[i];
      while (!left.empty()) {
        const auto sent = send(client, left.data(), left.size(), MSG_NOSIGNAL);
        if (sent <= 0) break;
        left.remove_prefix(static_cast<std::size_t>(sent));
      }
      close(client);
    }
  }

  std::vector<std::string> answers_;
  int listener_;
  std::string place_;
  std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

/// An answer such as `HTTP/1.1 404 x`. `promised`: the length that its header says, if another than
/// it has.
inline std::string http_answer(int status, const std::string& body, const std::string& header = "",
                               std::size_t promised = std::string::npos) {
  return "HTTP/1.1 " + std::to_string(status) + " x\r\nConnection: close\r\nContent-Length: " +
         std::to_string(promised == std::string::npos ? body.size() : promised) + "\r\n" + header +
         "\r\n" + body;
}

/// What a server sends of a file of `whole` bytes from `begin` on; perhaps less than it promises.
inline std::string http_rest(std::size_t begin, std::size_t whole, const std::string& body) {
  return http_answer(206, body,
                     "Content-Range: bytes " + std::to_string(begin) + "-" +
                         std::to_string(whole - 1) + "/" + std::to_string(whole) + "\r\n",
                     whole - begin);
}

}  // namespace dtool::trainer
