/* plus: a module in C++. */
#include <stampd.h>

#include <cstring>
#include <string>

namespace
{
stampd_outcome greet(stampd_call *call)
{
    std::string words = "hello ";
    words += stampd_read_text(call, stampd_param(call), "name", 1, 50);
    return stampd_result_text(call, nullptr,
                              stampd_bytes(stampd_copy(call, words.data(), words.size()), words.size()));
}

const stampd_operation operations[] = {
    {.name = "Greet", .access = STAMPD_PUBLIC, .work = greet},
    {.name = nullptr},
};
} // namespace

const struct stampd_module stampd_module = {
    .abi = STAMPD_ABI, .name = "plus", .version = "1.0", .operations = operations};
