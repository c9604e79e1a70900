// It runs before the page is drawn, or the page would be drawn in other colours first.
try {
  const theme = localStorage.getItem("edda-docs-theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch { /* a browser that keeps nothing */ }
document.documentElement.classList.add("js");
