// SPDX-License-Identifier: MIT
#include "cli/plot/picture.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "cli/action.h"
#include "cli/failures.h"
#include "ssh/fanout/fleet.h"

namespace dtool::cli {

void write_picture(const PictureRequest& request, const std::string& file) {
  const auto here = ssh::make_fleet({ssh::parse_host("local")}, {});
  ssh::Events nobody;
  const ssh::HostResult drawn =
      here->run({{0, ssh::LocalProgram{{"gnuplot", "-"}, gnuplot_script(request)}}}, nobody, {})
          .front();
  if (drawn.failure == ssh::Failure::local_program) {
    throw UsageError("--output needs gnuplot, which is not on this machine",
                     "install Debian's gnuplot-nox; without --output the plot is in the terminal");
  }
  if (!drawn.ok() || drawn.out.empty())
    throw UsageError(fmt::format("gnuplot failed ({}): {}", describe(drawn), drawn.err));
  std::ofstream stream(file, std::ios::binary);
  stream << drawn.out;
  stream.close();
  if (!stream) throw UsageError(fmt::format("cannot write {}: {}", file, std::strerror(errno)));
}

}  // namespace dtool::cli
