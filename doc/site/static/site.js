/* Light, dark, or as the system has it: what the button has chosen is kept. */
const themes = ["auto", "dark", "light"];
const theme = () => localStorage.getItem("theme") || "auto";

document.documentElement.classList.remove("no-js");
document.body.dataset.theme = theme();
document.addEventListener("click", (event) => {
    if (event.target.closest(".theme-toggle")) {
        localStorage.setItem("theme", themes[(themes.indexOf(theme()) + 1) % themes.length]);
        document.body.dataset.theme = theme();
    }
});
