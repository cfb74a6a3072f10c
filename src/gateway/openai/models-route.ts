/** `GET /v1/models`: what is served here. */
import { findModel, type ServedModel, unknownModel } from "../served-model.js";

function describe(model: ServedModel) {
  return { id: model.name, object: "model", created: model.createdUnixSeconds, owned_by: "pagoda", aliases: model.aliases };
}

/** All models. */
export function listModels(models: readonly ServedModel[]) {
  return { object: "list", data: models.map(describe) };
}

/** One model by its name or alias; throws `model_not_found`. */
export function retrieveModel(models: readonly ServedModel[], name: string) {
  const model = findModel(models, name);
  if (model === undefined) throw unknownModel(models, name);
  return describe(model);
}
