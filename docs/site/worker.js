// SPDX-License-Identifier: GPL-2.0-or-later
// Browsers start no workers from files. Where the site is opened as one, its search runs in a frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inner = frame.contentWindow;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const load = (source) =>
        new Promise((done, failed) => {
          const script = inner.document.createElement("script");
          Object.assign(script, { src: source, onload: done, onerror: failed });
          inner.document.body.appendChild(script);
        });
      inner.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
      const ready = load(url);
      this.postMessage = (data) =>
        ready.then(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
    }
  };
}
