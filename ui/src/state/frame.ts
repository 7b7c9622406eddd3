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
