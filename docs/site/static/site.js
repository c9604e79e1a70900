// Search, the menu of versions, copying, and colours that are kept. A page is whole without it.
(() => {
  const $ = (selector) => document.querySelector(selector);
  const { root, path, version } = document.body.dataset;
  const make = (name, text, set = {}) => Object.assign(document.createElement(name), { textContent: text }, set);

  // Colours.
  for (const radio of document.querySelectorAll("input[name=theme]")) {
    radio.checked = radio.value === (document.documentElement.dataset.theme || "");
    radio.addEventListener("change", () => {
      document.documentElement.dataset.theme = radio.value;
      try { localStorage.setItem("edda-docs-theme", radio.value); } catch { /* not kept */ }
    });
  }
  // A menu closes when something else is chosen, and by Escape.
  const menus = document.querySelectorAll("details.pick");
  document.addEventListener("click", (e) => menus.forEach((m) => m.contains(e.target) || (m.open = false)));
  document.addEventListener("keydown", (e) => {
    if (e.key !== "Escape") return;
    for (const menu of menus) {
      if (menu.open && menu.contains(document.activeElement)) menu.querySelector("summary").focus();
      menu.open = false;
    }
    if (location.hash === "#menu") location.hash = "#content";
  });

  // Copying.
  if (navigator.clipboard) {
    for (const block of document.querySelectorAll(".code")) {
      const button = make("button", "Copy", { type: "button", className: "copy" });
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(block.querySelector("code").textContent);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 2000);
      });
      block.append(button);
    }
  }
  // What does not scroll needs no stop of the Tab key.
  const stops = () => document.querySelectorAll(".code pre, .scroll").forEach((e) => {
    if (e.scrollWidth > e.clientWidth) e.tabIndex = 0; else e.removeAttribute("tabindex");
  });
  stops();
  addEventListener("resize", stops);

  // Where the reader is, in the contents of the page.
  const links = new Map([...document.querySelectorAll("nav.contents a")].map((a) => [a.hash.slice(1), a]));
  const heads = [...document.querySelectorAll("article h2[id], article h3[id]")].filter((h) => links.has(h.id));
  const here = () => {
    const at = heads.findLast((h) => h.getBoundingClientRect().top < 120) || heads[0];
    links.forEach((a, id) => at && id === at.id ? a.setAttribute("aria-current", "true") : a.removeAttribute("aria-current"));
  };
  if (links.size) { here(); addEventListener("scroll", here, { passive: true }); }
  const current = $(".menu [aria-current=page]");
  const menu = $(".menu");
  if (current && menu.scrollHeight > menu.clientHeight) menu.scrollTop = current.offsetTop - menu.clientHeight / 3;

  // Versions.
  const list = $(".versions ul");
  const show = (all) => {
    for (const v of [...all].reverse()) {
      const item = make("li", "");
      const to = v.pages.includes(path) ? path : "index.html";
      const link = make("a", v.version + (v.latest ? " (latest)" : ""), { href: `${root}../${v.version}/${to}` });
      if (v.version === version) link.setAttribute("aria-current", "true");
      item.append(link);
      list.prepend(item);
    }
    const latest = all.find((v) => v.latest);
    const own = all.find((v) => v.version === version);
    if (latest && own && !own.latest && latest.released) {
      const to = latest.pages.includes(path) ? path : "index.html";
      const note = $(".old");
      note.append(own.released ? "This is an older version. " : "This has not been released. ",
        make("a", `Read ${latest.version}`, { href: `${root}../${latest.version}/${to}` }), ", the latest release.");
      note.hidden = false;
    }
  };
  if (location.protocol !== "file:") {
    fetch(`${root}../versions.json`).then((r) => r.ok ? r.json() : []).then(show, () => {});
  }

  // Search.
  const dialog = $("dialog.search");
  const query = $("#query");
  const found = $(".found");
  const count = $(".count");
  let index;
  const load = (src) => new Promise((done, failed) => {
    document.head.append(Object.assign(document.createElement("script"), { src, onload: done, onerror: failed }));
  });
  const fold = (term) => term.toLowerCase();
  const prepare = () => index ??= Promise.all([load(`${root}static/minisearch.js`), load(`${root}search-index.js`)])
    .then(() => {
      const search = new MiniSearch({
        fields: ["page", "heading", "text"], storeFields: ["page", "heading", "section", "path", "text"],
        processTerm: fold,
        searchOptions: { boost: { page: 6, heading: 4 }, prefix: true, fuzzy: (t) => t.length > 4 ? 0.2 : false, combineWith: "AND" },
      });
      search.addAll(window.eddaPages);
      return search;
    });
  const marked = (text, terms) => {
    const lower = text.toLowerCase();
    const first = Math.min(...terms.map((t) => lower.indexOf(t)).filter((n) => n >= 0), text.length);
    const from = first === text.length ? 0 : Math.max(0, text.lastIndexOf(" ", Math.max(0, first - 60)));
    const out = make("span", from > 0 ? "…" : "", { className: "snippet" });
    const escaped = terms.map((t) => t.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).sort((a, b) => b.length - a.length);
    const pieces = text.slice(from, from + 180).split(new RegExp(`(${escaped.join("|")})`, "i"));
    pieces.forEach((piece, n) => out.append(n % 2 ? make("mark", piece) : piece));
    return out;
  };
  const search = async () => {
    const engine = await prepare();
    const asked = query.value.trim();
    let hits = asked ? engine.search(asked) : [];
    if (!hits.length && asked) hits = engine.search(asked, { combineWith: "OR" });
    if (asked !== query.value.trim()) return; // somebody types on
    found.replaceChildren(...hits.slice(0, 20).map((hit) => {
      const link = make("a", "", { href: root + hit.path });
      link.append(make("strong", hit.heading ? `${hit.page} › ${hit.heading}` : hit.page),
        make("small", hit.section), marked(hit.text, hit.terms));
      const item = make("li", "");
      item.append(link);
      return item;
    }));
    count.textContent = !asked ? "" : hits.length === 1 ? "1 place" : hits.length ? `${hits.length} places` : "Nothing is found. Try fewer words.";
  };
  const open = () => {
    prepare();
    if (!dialog.open) dialog.showModal();
    query.focus();
    query.select();
  };
  const button = $("button.find");
  button.hidden = false;
  button.addEventListener("click", open);
  query.addEventListener("input", search);
  query.addEventListener("focus", prepare);
  document.addEventListener("keydown", (e) => {
    const typing = e.target.closest?.("input:not([type=radio]), textarea, select");
    if (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey || e.key === "k" && (e.ctrlKey || e.metaKey)) {
      e.preventDefault();
      open();
    }
  });
  dialog.addEventListener("click", (e) => { if (e.target === dialog || e.target.closest(".found a")) dialog.close(); });
  dialog.addEventListener("keydown", (e) => {
    const hits = [...found.querySelectorAll("a")];
    const at = hits.indexOf(document.activeElement);
    if (e.key === "Enter" && document.activeElement === query) {
      e.preventDefault();
      hits[0]?.click();
    } else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      const next = at + (e.key === "ArrowDown" ? 1 : -1);
      (next < 0 ? query : hits[Math.min(next, hits.length - 1)])?.focus();
    }
  });
})();
