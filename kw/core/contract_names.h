// Which names a contract may give: internal to the contract parser.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace kw {

// Each returns why a name cannot be used, as the second half of a sentence; nothing when it can.

// Choices of an enumeration: lower-case words joined by single underscores ("weight_decay", "beta1"), at most 64 characters long.
std::optional<std::string> refuse_word(std::string_view name);
// Ops, inputs, results and attributes: such a word that no language or framework keeps for itself.
std::optional<std::string> refuse_name(std::string_view name);
// Dimensions and type variables: a capital first, then letters and digits.
std::optional<std::string> refuse_symbol(std::string_view name);

}  // namespace kw
