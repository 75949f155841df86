"use strict";
// The page is whole without this: here are only conveniences.

const root = document.documentElement;
const said = document.getElementById("said");

// Theme: auto, light, dark, kept where the browser allows it.
const themes = ["auto", "light", "dark"];
const button = document.getElementById("theme");
let theme = "auto";
try { theme = localStorage.getItem("theme") ?? "auto"; } catch { /* a browser that keeps nothing */ }
function show(next) {
  theme = themes.includes(next) ? next : "auto";
  if (theme === "auto") delete root.dataset.theme; else root.dataset.theme = theme;
  button.textContent = `Theme: ${theme}`;
}
show(theme);
button.hidden = false;
button.addEventListener("click", () => {
  show(themes[(themes.indexOf(theme) + 1) % themes.length]);
  try { localStorage.setItem("theme", theme); } catch { /* the same */ }
});

// Contents: always open beside the text, closed at first above it.
const contents = document.getElementById("contents");
const narrow = matchMedia("(max-width: 56rem)");
const fit = () => { contents.open = !narrow.matches; };
narrow.addEventListener("change", fit);
fit();
contents.addEventListener("click", (event) => {
  if (narrow.matches && event.target.closest("a")) contents.open = false;
});

// Filter.
const filter = document.getElementById("filter");
filter.parentElement.hidden = false;
filter.addEventListener("input", () => {
  const wanted = filter.value.trim().toLowerCase();
  for (const list of contents.querySelectorAll("ul")) {
    let any = false;
    for (const item of list.children) {
      item.hidden = !item.textContent.toLowerCase().includes(wanted);
      any ||= !item.hidden;
    }
    list.previousElementSibling.hidden = !any;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && event.target.tagName !== "INPUT") {
    event.preventDefault();
    contents.open = true;
    filter.focus();
  } else if (event.key === "Escape" && event.target === filter) {
    filter.value = "";
    filter.dispatchEvent(new Event("input"));
    document.getElementById("main").focus({ preventScroll: true });
  }
});

// Where the reader is.
const links = new Map([...contents.querySelectorAll("a")].map((a) => [a.hash.slice(1), a]));
let current;
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    current?.removeAttribute("aria-current");
    current = links.get(entry.target.id);
    current?.setAttribute("aria-current", "true");
  }
}, { rootMargin: "-15% 0px -75% 0px" });
for (const id of links.keys()) {
  const place = document.getElementById(id);
  if (place) watcher.observe(place);
}

// Copy.
if (navigator.clipboard) {
  for (const block of document.querySelectorAll("pre")) {
    const copy = document.createElement("button");
    copy.type = "button";
    copy.className = "copy";
    copy.textContent = "Copy";
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(block.querySelector("code").textContent);
        copy.textContent = "Copied";
      } catch {
        copy.textContent = "Not allowed";
      }
      said.textContent = copy.textContent;
      setTimeout(() => { copy.textContent = "Copy"; }, 2000);
    });
    block.append(copy);
  }
}
