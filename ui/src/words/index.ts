// Hostile words: what agents, files and people say, made into text nodes.
export {}
