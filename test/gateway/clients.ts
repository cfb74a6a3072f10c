/** The official clients in the versions that are in use: they differ in what they accept. */
import OpenAI from "openai";
import OpenAI6 from "openai6";

// The parts used here are alike in both versions, but their types do not unify.
export const clients = [
  ["openai 7", OpenAI],
  ["openai 6", OpenAI6 as unknown as typeof OpenAI],
] as const;
