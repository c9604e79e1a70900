// Keeps an open page up to date by server-sent events, and adds keys. Every page is whole without it.
"use strict";

(function () {
  const root = document.documentElement;
  const storage = { // a browser may forbid it
    get(name) { try { return localStorage.getItem(name); } catch { return null; } },
    set(name, value) { try { localStorage.setItem(name, value); } catch { /* then it holds for this page */ } },
  };
  const theme = storage.get("edda-theme");
  if (theme && theme !== "auto") {
    root.dataset.theme = theme; // before the page is drawn
  }

  document.addEventListener("DOMContentLoaded", function () {
    themes();
    const here = document.querySelector("header nav [aria-current]");
    if (here) {
      here.scrollIntoView({block: "nearest", inline: "nearest"}); // on a phone
    }
    copies(document);
    times();
    keys();
    follow();
  });

  function themes() {
    document.querySelectorAll("input[name=theme]").forEach(function (input) {
      input.checked = input.value === (theme || "auto");
      input.addEventListener("change", function () {
        storage.set("edda-theme", input.value);
        if (input.value === "auto") {
          delete root.dataset.theme;
        } else {
          root.dataset.theme = input.value;
        }
      });
    });
  }

  function copies(within) {
    if (!navigator.clipboard) {
      return;
    }
    within.querySelectorAll("[data-copy]").forEach(function (button) { button.hidden = false; });
  }
  document.addEventListener("click", function (event) {
    const button = event.target.closest("[data-copy]");
    if (button) {
      navigator.clipboard.writeText(button.dataset.copy).then(function () {
        const text = button.textContent;
        button.textContent = "copied";
        setTimeout(function () { button.textContent = text; }, 1000);
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
    document.querySelectorAll("time[data-ago], time[data-age]").forEach(function (time) {
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
    const link = document.getElementById("link"), hold = document.getElementById("hold");
    if (!address || !window.EventSource || !window.Idiomorph) {
      return;
    }
    let source = null, held = false, first = new Set(), retry = 0;
    function say(text) {
      link.textContent = text;
      link.hidden = text === "";
    }
    function close() {
      clearTimeout(retry);
      if (source) {
        source.close();
        source = null;
      }
    }
    function open() {
      close();
      if (held || document.hidden) {
        return;
      }
      source = new EventSource(address);
      source.addEventListener("open", function () {
        first = new Set();
        say("live");
      });
      source.addEventListener("error", function () {
        say("the connection was lost; trying again");
        if (source && source.readyState === EventSource.CLOSED) {
          retry = setTimeout(open, 10000);
        }
      });
      source.addEventListener("clock", function (event) { ahead = Number(event.data) - Date.now(); });
      source.addEventListener("trouble", function (event) { say(JSON.parse(event.data).text || "live"); });
      source.addEventListener("fragment", function (event) {
        const news = JSON.parse(event.data), place = document.getElementById(news.id);
        if (place) {
          morph(place, news.html, first.has(news.id));
          first.add(news.id);
          times();
        }
      });
    }
    hold.hidden = false;
    hold.addEventListener("click", function () {
      held = !held;
      hold.setAttribute("aria-pressed", String(held));
      hold.textContent = held ? "Go on with updates" : "Pause updates";
      say(held ? "paused" : "");
      open();
    });
    document.addEventListener("visibilitychange", open);
    window.addEventListener("pagehide", close);
    window.addEventListener("pageshow", function (event) { if (event.persisted) { open(); } });
    open();
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
          return true;
        },
      },
    });
    copies(place);
    if (mark) {
      changed.forEach(function (node) {
        if (node) {
          node.classList.remove("fresh");
          void node.offsetWidth; // so that it begins again
          node.classList.add("fresh");
        }
      });
    }
  }

  function keys() {
    document.addEventListener("keydown", function (event) {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog[open]")) {
        return;
      }
      const find = document.getElementById("find"), hold = document.getElementById("hold");
      if (event.key === "/" && find) {
        event.preventDefault();
        find.focus();
        find.select();
      } else if (event.key === "?") {
        document.getElementById("help").showModal();
      } else if (event.key === "p" && hold && !hold.hidden) {
        hold.click();
      } else if (event.key === "j" || event.key === "k") {
        step(event.key === "j" ? 1 : -1);
      }
    });
  }
  function step(by) {
    const links = Array.from(document.querySelectorAll("main tbody tr")).map(function (row) {
      return row.querySelector("a");
    }).filter(Boolean);
    const at = links.findIndex(function (a) { return a.closest("tr").contains(document.activeElement); });
    const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
    if (next) {
      next.focus();
    }
  }
})();
