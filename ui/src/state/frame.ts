// Things done once for each frame, however often they are asked for. A hidden page has no frames, but goes on all the same.
export function eachFrame(then: () => void): () => void {
  let isAsked = false
  return () => {
    if (isAsked) return
    isAsked = true
    const run = () => {
      isAsked = false
      then()
    }
    if (document.hidden) setTimeout(run, 50)
    else requestAnimationFrame(run)
  }
}

/** Things done at once, and then at most so often: for what costs more than a frame has. */
export function atMost(everyMs: number, then: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | null = null
  let isAsked = false
  const run = () => {
    timer = setTimeout(() => {
      timer = null
      if (!isAsked) return
      isAsked = false
      run()
    }, everyMs)
    then()
  }
  return () => {
    if (timer) isAsked = true
    else run()
  }
}
