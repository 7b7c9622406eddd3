// How often a test does what it does: as the environment says, or so often. `xtask/src/counts.rs` has all of them.

export function count(variable: string, or: number): number {
  const said = process.env[variable]
  if (said === undefined) return or
  const number = Number(said)
  if (!Number.isInteger(number) || number < 1) throw new Error(`${variable} is no number: ${said}`)
  return number
}

/** Says a figure that the page of the nightly run has: it reads the lines that begin so. */
export function counted(words: string): void {
  console.log(`counted: ${words}`)
}
