/** What the gateway uses of the tokenizer. */
export type { ChatMessage, ContentPart, ToolCall } from "./chat-messages.js";
export type { ChatInput, ChatTemplate } from "./chat-template.js";
export { type ChatTokenizer, type ChatTokenizerOptions, createChatTokenizer, type Tokenize } from "./chat-tokenizer.js";
export { createDetokenizer, type Detokenizer, detokenize } from "./detokenizer.js";
export { createOutputText, type OutputChunk, type OutputText } from "./output-text.js";
export type { PromptPart } from "./special-split.js";
export { type AlignmentReport, compareTokenizerFile } from "./tokenizer-alignment.js";
export { createVocabulary, type SpecialToken, type Vocabulary, type VocabularyInfo } from "./vocabulary.js";
