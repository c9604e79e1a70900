// Makes a page look the same each time: its own fonts, and fixed texts where times, ids, hosts and durations stand.
(async function (fonts, page, host) {
  function bytes(base64) { return Uint8Array.from(atob(base64), c => c.charCodeAt(0)); }
  for (const [family, weight, text] of fonts) {
    const face = new FontFace(family, bytes(text), {weight: weight});
    await face.load();
    document.fonts.add(face);
  }
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`
    body { font-family: "picture text" !important; }
    code, pre, kbd, .mono, .id, .timeline .diff { font-family: "picture mono" !important; }
    * { animation: none !important; transition: none !important; caret-color: transparent !important; }`);
  document.adoptedStyleSheets = [sheet];

  const late = document.getElementById("e-history"); // the lease of those who clean the history
  if (late) {
    if (late.nextElementSibling && !late.nextElementSibling.id) { // its buttons
      late.nextElementSibling.remove();
    }
    late.remove();
  }
  document.querySelectorAll("#leases .news").forEach(link => link.remove()); // it has come or gone meanwhile
  if (page === "database") { // the server changes while somebody looks
    document.querySelectorAll("#tables tbody, #clients tbody, #vitals tbody").forEach(function (body) {
      const rows = Array.from(body.rows).sort((a, b) => a.cells[0].textContent < b.cells[0].textContent ? -1 : 1);
      body.replaceChildren(...rows.slice(0, 3));
    });
    document.querySelectorAll("#clients th[scope=row]").forEach(th => { th.textContent = "shop"; });
    document.querySelectorAll("#numbers dd").forEach(dd => { dd.textContent = "24"; });
    document.querySelectorAll("#tables td, #clients td").forEach(td => { td.textContent = "24"; });
    document.querySelectorAll("#tables p, #vitals td:nth-child(3), #findings li, #holders p").forEach(e => {
      e.innerHTML = e.innerHTML.replace(/\d[\d,.]*/g, "24");
    });
  }
  document.querySelectorAll(".pace").forEach(function (pace) {
    if (!pace.querySelector("svg")) {
      pace.textContent = pace.textContent.replace(/\d[\d.,]*/, "12");
    }
    pace.querySelectorAll(".spark path").forEach(function (path, n) {
      const line = path.closest(".line") ? "M1 19L99 19L103 5L107 12L119 19" : "M92 4h3v16h-3z";
      path.setAttribute("d", n > 0 ? "M103 20v-5" : line);
    });
  });
  let second = 0, span = 0;
  document.querySelectorAll("time").forEach(function (time) {
    const ahead = Date.parse(time.dateTime) > Date.now();
    if (time.dataset.age !== undefined) {
      time.textContent = "8 min";
    } else if (time.dataset.ago !== undefined) {
      time.textContent = ahead ? "in 23 h 51 min" : "8 min ago";
    } else {
      time.textContent = ahead ? "28 Nov 09:41:07" : "09:41:" + String(7 + second++ % 50).padStart(2, "0");
    }
    delete time.dataset.ago;
    delete time.dataset.age;
  });
  const spans = ["1.4 ms", "2.6 ms", "820 µs", "1.1 ms", "3.2 ms"];
  const texts = [
    [/[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d \w+/g, "Sat 2026-11-28 03:00:00 +01:00 CET"],
    [/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{3}Z| [A-Z]{3,4}\b)/g, "2026-11-27 09:41:05.280Z"],
    [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "01a218db-0af9-7d5a-a12c-e067ff012d85"],
    [/…[0-9a-f]{8}/g, "…ff012d85"],
    [/(after it was (?:sent|due)).*/g, "$1, handler 240 ns"],
    [/\d[\d.]* (µs|ms|s|min|h|days)\b( \d+ min)?(?! ago| of)/g, () => spans[span++ % spans.length]],
    [/240 ns/g, "240 µs"],
    [/\d[\d.]* [kM]?B\b/g, "96 kB"],
    [/process \d+/g, "process 4711"],
    [/(letter|dead show) \d+/gi, m => m.replace(/\d+/, "4")],
    [/(customer-|label )\d+/g, "$14"],
    [new RegExp(host + "/[0-9a-f]{12}", "g"), "shop-1/5e0c1a9b7d42"],
    [new RegExp("\\b" + host + "\\b", "g"), "shop-1"],
  ];
  const counters = "#sagas .n, #rest .n"; // numbers that a process adds by and by
  const ordered = ["letter", "group"].includes(page); // by who died first
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const parent = node.parentElement;
    if (parent.closest("time, script, style, thead") || page === "border" && parent.closest("td:nth-child(2)") ||
        page === "manifest" && parent.closest("dl")) {
      continue;
    }
    let text = node.nodeValue;
    for (const [what, by] of texts) {
      text = text.replace(what, by);
    }
    if (ordered) {
      text = text.replace(/2026-00\d\d/g, "2026-0004");
    }
    if (parent.closest(".n") && /^\s*[\d,]+\s*$/.test(text)) {
      text = parent.closest(counters) ? text.replace(/[\d,]+/, "24") : ordered && parent.closest("th") ? "4" : text;
    }
    if (page === "processes" && parent.closest("th .soft")) {
      text = "4711";
    }
    node.nodeValue = text;
  }
  const link = document.getElementById("link"), hold = document.getElementById("hold");
  if (link && !link.hidden) {
    link.textContent = "live";
    hold.textContent = "Pause updates";
    hold.setAttribute("aria-pressed", "false");
  }
  document.activeElement.blur();
  await document.fonts.ready;
  return "frozen";
})
