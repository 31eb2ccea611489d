// SPDX-License-Identifier: MIT
// Man pages, from the same tables as --help. The build writes them with the hidden `dtool __man
// FOLDER DATE`.
#pragma once

#include <filesystem>
#include <string>

namespace CLI {
class App;
}

namespace dtool::cli {

/// The page of dtool, or of a subcommand of it, in the language of man(7). `date` is `2026-11-21`.
std::string man_page(const CLI::App& app, const std::string& date);

/// Writes dtool.1 and dtool-COMMAND.1 for every command into `folder`, which is made if missing.
/// Throws std::system_error naming the file.
void write_man_pages(const CLI::App& app, const std::filesystem::path& folder,
                     const std::string& date);

}  // namespace dtool::cli
