// A model of LangChain.
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";

import { CALL, answerTo } from "./script.mjs";

export const model = fakeModel()
  .respondWithTools([CALL])
  .respond((messages) => new AIMessage(answerTo(messages.find((message) => ToolMessage.isInstance(message)).content)));
