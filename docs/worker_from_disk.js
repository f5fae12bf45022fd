/* A page that was opened from disk may not start a worker, and the theme searches in one. Here a worker is a frame that
   nobody sees: its script runs beside the page, and messages go to and fro as events. Elsewhere nothing is changed. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.documentElement.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      this.inside.importScripts = (...addresses) => Promise.all(addresses.map((one) => this.load(one)))
      this.ready = this.load(address)
    }

    load(address) {
      const script = this.inside.document.createElement("script")
      script.src = new URL(address, document.baseURI)
      return new Promise((resolve, reject) => {
        script.onload = resolve
        script.onerror = reject
        this.inside.document.documentElement.append(script)
      })
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
}
