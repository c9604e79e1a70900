// Keeps an open page up to date by server-sent events, and adds keys. Every page is whole without it.
"use strict";

(() => {
  const root = document.documentElement, byID = (id) => document.getElementById(id);
  const storage = { // a browser may forbid it
    get(name) { try { return localStorage.getItem(name); } catch { return null; } },
    set(name, value) { try { localStorage.setItem(name, value); } catch { /* then it holds for this page */ } },
  };
  const theme = storage.get("edda-theme");
  if (theme && theme !== "auto") {
    root.dataset.theme = theme; // before the page is drawn
  }

  document.addEventListener("DOMContentLoaded", () => {
    themes();
    document.querySelector("header nav [aria-current]")?.scrollIntoView({block: "nearest", inline: "nearest"}); // on a phone
    copies(document);
    times();
    keys();
    follow();
    const here = new URL(location.href);
    if (here.searchParams.has("done")) { // what was done is said once
      here.searchParams.delete("done");
      here.searchParams.delete("counts");
      history.replaceState(null, "", here);
    }
  });

  function themes() {
    document.querySelectorAll("input[name=theme]").forEach((input) => {
      input.checked = input.value === (theme || "auto");
      input.addEventListener("change", () => {
        storage.set("edda-theme", input.value);
        root.dataset.theme = input.value === "auto" ? "" : input.value;
      });
    });
  }

  function copies(within) {
    if (navigator.clipboard) {
      within.querySelectorAll("[data-copy]").forEach((button) => { button.hidden = false; });
    }
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]"), news = event.target.closest(".news");
    if (news) {
      event.preventDefault();
      const place = news.closest("[data-live]");
      morph(place, latest.get(place.id), false);
      place.querySelector(".scroll").focus();
    } else if (button) {
      navigator.clipboard.writeText(button.dataset.copy).then(() => {
        const text = button.textContent;
        button.textContent = "copied";
        setTimeout(() => { button.textContent = text; }, 1000);
      });
    }
  });

  // Times that are told as a distance from now.
  let ahead = 0; // of the server's clock
  function distance(ms) {
    const minutes = Math.floor(ms / 60000), hours = Math.floor(minutes / 60);
    if (minutes < 60) {
      return minutes + " min";
    }
    if (hours >= 48) {
      return Math.floor(hours / 24) + " days";
    }
    return hours + " h" + (minutes % 60 ? " " + minutes % 60 + " min" : "");
  }
  function times() {
    document.querySelectorAll("time[data-ago], time[data-age]").forEach((time) => {
      const ms = Date.now() + ahead - Date.parse(time.dateTime);
      let text = ms < 0 ? "in a moment" : "just now";
      if (time.dataset.age !== undefined) {
        text = ms < 60000 ? "under 1 min" : distance(ms);
      } else if (ms <= -60000) {
        text = "in " + distance(-ms);
      } else if (ms >= 60000) {
        text = distance(ms) + " ago";
      }
      if (time.textContent !== text) {
        time.textContent = text;
      }
    });
  }
  setInterval(times, 10000);

  function follow() {
    const address = document.body.dataset.stream;
    const link = byID("link"), hold = byID("hold");
    if (!address || !window.Idiomorph) {
      return;
    }
    let source, held = false, first = new Set(), retry;
    function say(text) {
      link.textContent = text;
      link.hidden = text === "";
    }
    function close() {
      clearTimeout(retry);
      source?.close();
      source = null;
    }
    function open() {
      close();
      if (held || document.hidden) {
        return;
      }
      source = new EventSource(address);
      source.addEventListener("open", () => {
        first = new Set();
        say("live");
      });
      source.addEventListener("error", () => {
        say("the connection was lost; trying again");
        if (source?.readyState === 2) {
          retry = setTimeout(open, 10000);
        }
      });
      source.addEventListener("clock", (event) => { ahead = Number(event.data) - Date.now(); });
      source.addEventListener("trouble", (event) => { say(JSON.parse(event.data).text || "live"); });
      source.addEventListener("fragment", (event) => {
        const news = JSON.parse(event.data), place = byID(news.id);
        if (place) {
          latest.set(news.id, news.html);
          morph(place, keep(place, news.html), first.has(news.id));
          first.add(news.id);
          times();
        }
      });
    }
    hold.hidden = false;
    hold.addEventListener("click", () => {
      held = !held;
      hold.setAttribute("aria-pressed", String(held));
      hold.textContent = held ? "Resume updates" : "Pause updates";
      say(held ? "paused" : "");
      open();
    });
    document.addEventListener("visibilitychange", open);
    window.addEventListener("pagehide", close);
    window.addEventListener("pageshow", (event) => { if (event.persisted) { open(); } });
    open();
  }

  // keep leaves rows of lists in their places: new ones wait behind a link, those that are gone stay.
  const latest = new Map();
  function keep(place, html) {
    const next = document.createElement("template"), tables = place.querySelectorAll("table.rows");
    next.innerHTML = html;
    next.content.querySelectorAll("table.rows").forEach((table, n) => {
      const shown = tables[n]?.tBodies[0];
      if (!shown?.rows[0]?.id) {
        return;
      }
      const body = table.tBodies[0], rows = new Map(Array.from(body.rows, (row) => [row.id, row]));
      let gone = 0;
      body.replaceChildren(...Array.from(shown.rows, (old) => {
        const row = rows.get(old.id) || old.cloneNode(true);
        if (!rows.delete(old.id) && ++gone && !row.className) {
          row.className = "gone";
          row.cells[0].innerHTML += ' <span class="tag">gone</span>';
        }
        return row;
      }));
      if (rows.size + gone) {
        table.insertAdjacentHTML("beforebegin", '<a class="news" href="">' + (rows.size ? rows.size + " new" : gone + " gone") + "</a>");
      }
    });
    return next.innerHTML;
  }

  // morph changes what is different, and nothing else: focus, selection, open details and the scroll position stay.
  function morph(place, html, mark) {
    const selection = document.getSelection();
    if (selection && !selection.isCollapsed && place.contains(selection.anchorNode)) {
      return; // somebody is about to copy something here; the next change brings it all
    }
    const changed = new Set();
    Idiomorph.morph(place, html, {
      morphStyle: "innerHTML", ignoreActiveValue: true, restoreFocus: true,
      callbacks: {
        beforeAttributeUpdated(name, node) {
          return !(name === "open" && node.nodeName === "DETAILS") && !(name === "hidden" && node.dataset.copy);
        },
        beforeNodeMorphed(before, after) {
          if (before.nodeType === Node.TEXT_NODE && before.nodeValue !== after.nodeValue && before.parentElement.nodeName !== "TIME") {
            changed.add(before.parentElement.closest("td, li, dd"));
          }
          return before.nodeName !== "FORM" || !busy(before);
        },
        beforeNodeRemoved(node) {
          return !node.querySelectorAll || !Array.from(node.querySelectorAll("form")).some(busy);
        },
      },
    });
    copies(place);
    if (mark) {
      changed.forEach((node) => {
        if (node) {
          node.classList.remove("fresh");
          void node.offsetWidth; // so that it begins again
          node.classList.add("fresh");
        }
      });
    }
  }

  // busy reports whether somebody has begun to fill in a form: all of it stays as it is then, what is hidden included.
  function busy(form) {
    return form.contains(document.activeElement) || Array.from(form.elements).some(function (e) {
      if (e.nodeName === "SELECT") {
        return e.selectedIndex !== Math.max(0, Array.from(e.options).findIndex((o) => o.defaultSelected));
      }
      return e.type === "checkbox" ? e.checked !== e.defaultChecked :
        e.type !== "hidden" && e.defaultValue !== undefined && e.value !== e.defaultValue;
    });
  }

  function keys() {
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog[open]")) {
        return;
      }
      const find = byID("find"), hold = byID("hold");
      if (event.key === "/") {
        event.preventDefault();
        find.focus();
        find.select();
      } else if (event.key === "?") {
        byID("help").showModal();
      } else if (event.key === "p" && hold?.hidden === false) {
        hold.click();
      } else if (event.key === "j" || event.key === "k") {
        step(event.key === "j" ? 1 : -1);
      }
    });
  }
  function step(by) {
    const links = Array.from(document.querySelectorAll("main tbody tr"), (row) => row.querySelector("a")).filter(Boolean);
    const at = links.findIndex((a) => a.closest("tr").contains(document.activeElement));
    const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
    if (next) {
      next.focus();
    }
  }
})();
