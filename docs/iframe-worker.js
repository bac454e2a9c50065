// Search where the site is read from a disk: a browser starts no worker from a file, so a hidden frame stands in for it.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const scope = this.frame.contentWindow
      scope.document.open()
      scope.document.write("<!doctype html><body></body>")
      scope.document.close()
      scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.ready = new Promise((resolve, reject) => {
        const script = scope.document.createElement("script")
        script.src = url
        script.onload = () => resolve(scope)
        script.onerror = reject
        scope.document.body.append(script)
      })
    }

    postMessage(data) {
      this.ready.then(scope => scope.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
